"use strict";
/* Open the section that a link points at. */
(() => {
  function openTarget() {
    const target = /^#(connection|group)-/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
    if (target) {
      target.open = true;
      target.scrollIntoView();
    }
  }

  /* A second click on the same link changes no hash, so the click itself opens the section. */
  document.addEventListener("click", (event) => {
    if (event.target.closest("main a")) setTimeout(openTarget, 0);
  });
  addEventListener("hashchange", openTarget);
  openTarget();
})();
