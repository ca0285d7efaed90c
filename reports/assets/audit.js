"use strict";
/* A click in the matrix opens the cell's section, and a link to a connection the sections around it. */
(() => {
  function openTarget() {
    const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    for (let element = target; element; element = element.parentElement) {
      if (element.tagName === "DETAILS") element.open = true;
    }
    if (target) target.scrollIntoView();
  }
  /* A second click on the same link changes no hash, so the click itself opens the section. */
  document.querySelector(".matrix").addEventListener("click", (event) => {
    if (event.target.closest("a")) setTimeout(openTarget, 0);
  });
  addEventListener("hashchange", openTarget);
  openTarget();
})();
