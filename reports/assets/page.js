"use strict";
/* The summary table: filter by verdict and by word, sort by column, open the section that a link points at. */
(() => {
  const table = document.getElementById("connections");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const chips = Array.from(document.querySelectorAll(".chip"));
  const search = document.getElementById("filter");
  const shown = document.getElementById("shown");

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kinds = new Set(chips.filter((c) => c.getAttribute("aria-pressed") === "true").map((c) => c.dataset.kind));
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const visible = kinds.has(row.dataset.kind) && words.every((word) => text.includes(word));
      row.hidden = !visible;
      if (visible) count += 1;
    }
    shown.textContent = count === rows.length ? "" : `${count} of ${rows.length} rows shown`;
  }

  function sortBy(heading, column) {
    const descending = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent;
    const collator = new Intl.Collator("en", { numeric: true });
    const numeric = rows.every((row) => row.cells[column].dataset.sort !== undefined);
    const compare = numeric ? (a, b) => Number(key(a)) - Number(key(b)) : (a, b) => collator.compare(key(a), key(b));
    rows.sort(descending ? (a, b) => compare(b, a) : compare);
    body.append(...rows);
  }

  function openTarget() {
    const target = /^#(connection|group)-/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
    if (target) {
      target.open = true;
      target.scrollIntoView();
    }
  }

  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", chip.getAttribute("aria-pressed") === "true" ? "false" : "true");
      filter();
    });
  }
  search.addEventListener("input", filter);
  Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
    const button = heading.querySelector("button");
    if (button) button.addEventListener("click", () => sortBy(heading, column));
  });
  /* A second click on the same link changes no hash, so the click itself opens the section. */
  document.addEventListener("click", (event) => {
    if (event.target.closest("main a")) setTimeout(openTarget, 0);
  });
  addEventListener("hashchange", openTarget);
  openTarget();
})();
