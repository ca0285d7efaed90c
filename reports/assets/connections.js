"use strict";
/*
 * The table of connections. The page holds every connection as columns; the document holds the rows in view, a few
 * beyond them, and the row that the keyboard is on. All rows are of one height, so that a row's place follows from its
 * position.
 */
(async () => {
  const scroller = document.getElementById("connections-scroll");
  const table = document.getElementById("connections");
  const body = table.tBodies[0];
  const headings = Array.from(table.tHead.rows[0].cells);
  const chips = Array.from(document.querySelectorAll(".chip"));
  const search = document.getElementById("filter");
  const shown = document.getElementById("shown");

  /* Browsers limit the height of an element, Firefox to 17.8 million pixels; a longer table scrolls in larger steps. */
  const MAX_HEIGHT = 15e6;
  const ROWS_BEYOND_VIEW = 8;
  const MAX_PRINTED = 500;
  /* So many rows stand in the document at once; more need a box that scrolls. */
  const MAX_WHOLE = 100;
  const OUT_OF_SIGHT = "-9999px";

  let data;
  try {
    data = await unpack(JSON.parse(document.getElementById("connection-columns").textContent));
  } catch {
    shown.textContent = "This browser cannot unpack the table of connections. The evidence below is complete.";
    return;
  }

  let rank = Uint32Array.from({ length: data.rows }, (_, row) => row); /* all rows as sorted */
  let order = rank; /* those of them that pass the filter */
  let active = 0; /* position in `order` that the keyboard is on */
  const rendered = new Map(); /* position in `order` -> table row */
  let placed = { first: 0, last: 0 }; /* positions from `first` to `last` (not included) stand in their places */
  let rowHeight = 0;

  /* All at once: the browser inflates beside the main thread, which is busy with the rest of the page. */
  async function unpack(packed) {
    const column = async ({ texts, codes, ports }) => {
      const [text, code, port] = await Promise.all([
        inflate(texts),
        codesOf(codes, packed.rows),
        ports === undefined ? null : codesOf(ports, packed.rows),
      ]);
      return { texts: JSON.parse(new TextDecoder().decode(text)), codes: code, ports: port };
    };
    const names = ["client", "server", "probability", "payload", "duration", "reason"];
    const [verdicts, ...unpacked] = await Promise.all([
      codesOf(packed.verdict, packed.rows),
      ...names.map((name) => column(packed[name])),
    ]);
    const columns = Object.fromEntries(names.map((name, place) => [name, unpacked[place]]));
    columns.verdict = { texts: packed.kinds, codes: verdicts, ports: null };
    return { rows: packed.rows, linked: packed.linked, columns };
  }

  /* Codes come as planes of bytes, the lowest first. */
  async function codesOf(packed, count) {
    const planes = await inflate(packed);
    const codes = new Uint32Array(count);
    for (let at = 0; at < planes.length; at += 1) codes[at % count] += planes[at] * 256 ** Math.floor(at / count);
    return codes;
  }

  function textOf(name, row) {
    const { texts, codes, ports } = data.columns[name];
    const text = texts[codes[row]];
    return ports !== null && ports[row] > 0 ? text + ports[row] : text;
  }

  /* Which rows hold a word in one of their columns; a text that many rows have is searched once. */
  function rowsWith(word) {
    const found = new Uint8Array(data.rows);
    for (const { texts, codes, ports } of Object.values(data.columns)) {
      const lower = texts.map((text) => text.toLowerCase());
      const hits = lower.map((text) => text.includes(word));
      const some = hits.includes(true);
      /* A word that reaches into the port ends with digits. */
      const digits = /[0-9]+$/.test(word);
      for (let row = 0; row < data.rows; row += 1) {
        if (found[row]) continue;
        if (some && hits[codes[row]]) found[row] = 1;
        else if (ports !== null && digits && ports[row] > 0) {
          found[row] = (lower[codes[row]] + ports[row]).includes(word) ? 1 : 0;
        }
      }
    }
    return found;
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean).map(rowsWith);
    const pressed = new Set(chips.filter((c) => c.getAttribute("aria-pressed") === "true").map((c) => c.dataset.kind));
    const { texts, codes } = data.columns.verdict;
    const wanted = texts.map((kind) => pressed.has(kind));
    order = rank.filter((row) => wanted[codes[row]] && words.every((found) => found[row]));
    table.setAttribute("aria-rowcount", order.length + 1);
    describe("");
    begin();
  }

  function describe(note) {
    const all = `${data.rows.toLocaleString("en")} connection${data.rows === 1 ? "" : "s"}`;
    const some = order.length === data.rows ? all : `${order.length.toLocaleString("en")} of ${all} shown`;
    shown.textContent = some + note;
  }

  function sortBy(heading, name) {
    const descending = heading.getAttribute("aria-sort") === "ascending";
    for (const other of headings) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const { codes, ports } = data.columns[name];
    /* Rows stand in the order of verdicts, the more interesting first, as they come. */
    const key = Float64Array.from(codes, (code, row) =>
      name === "verdict" ? row : ports === null ? code : code * 65536 + ports[row],
    );
    const sign = descending ? -1 : 1;
    rank = rank.slice().sort((a, b) => sign * (key[a] - key[b]) || a - b);
    filter();
  }

  function makeRow(position) {
    const row = order[position];
    const made = document.createElement("tr");
    made.setAttribute("role", "row");
    made.setAttribute("aria-rowindex", position + 2);
    for (const heading of headings) {
      const name = heading.textContent;
      const cell = document.createElement("td");
      cell.setAttribute("role", "gridcell");
      cell.dataset.label = name;
      cell.className = { client: "endpoint", server: "endpoint", verdict: "", reason: "reason" }[name] ?? "number";
      const text = textOf(name, row);
      if (name === "verdict") {
        const badge = document.createElement("span");
        badge.className = `badge ${text}`;
        badge.textContent = text;
        cell.append(badge);
      } else if (name === "client" && row < data.linked.length) {
        const link = document.createElement("a");
        link.href = `#connection-${data.linked[row]}`;
        link.tabIndex = -1;
        link.textContent = text;
        cell.append(link);
      } else {
        const content = document.createElement("span");
        content.textContent = text;
        cell.append(content);
      }
      made.append(cell);
    }
    return made;
  }

  function extent() {
    const view = scroller.clientHeight - table.tHead.offsetHeight;
    const whole = order.length * rowHeight;
    const height = Math.min(whole, MAX_HEIGHT);
    return { view, height, scale: height > view ? (whole - view) / (height - view) : 1 };
  }

  /*
   * Put the rows `first` to `last` (not included) into the document, `shift` pixels down. The active row stays in it
   * wherever the table is scrolled to, out of sight, since it holds the focus or is where the Tab key enters.
   */
  function put(first, last, shift) {
    placed = { first, last };
    const wanted = new Set();
    for (let position = first; position < last; position += 1) wanted.add(position);
    if (active < order.length) wanted.add(active);
    for (const [position, row] of rendered) {
      if (!wanted.has(position)) {
        row.remove();
        rendered.delete(position);
      }
    }
    /* Rows that stay are not moved: a row that moves loses the focus. */
    let next = body.firstChild;
    for (const position of Array.from(wanted).sort((a, b) => a - b)) {
      let row = rendered.get(position);
      if (row === undefined) {
        row = makeRow(position);
        rendered.set(position, row);
        body.insertBefore(row, next);
      } else next = row.nextSibling;
      row.tabIndex = position === active ? 0 : -1;
      row.style.top = isPlaced(position) ? `${position * rowHeight + shift}px` : OUT_OF_SIGHT;
    }
  }

  function isPlaced(position) {
    return position >= placed.first && position < placed.last;
  }

  function render() {
    const { view, height, scale } = extent();
    const scrolled = Math.min(scroller.scrollTop, Math.max(0, height - view)); /* below is what an open row adds */
    const top = scrolled * scale;
    const first = Math.max(0, Math.floor(top / rowHeight) - ROWS_BEYOND_VIEW);
    const last = Math.min(order.length, Math.ceil((top + view) / rowHeight) + ROWS_BEYOND_VIEW);
    put(first, last, scrolled - top);
  }

  /* Show the table from its first row, as after a filter. */
  function begin() {
    body.replaceChildren();
    rendered.clear();
    active = 0;
    scroller.classList.toggle("whole", order.length <= MAX_WHOLE);
    resize();
    scroller.scrollTop = 0;
    render();
  }

  /* The style gives the body its rows' height as line height, which the browser converts to pixels. */
  function resize() {
    rowHeight = parseFloat(getComputedStyle(body).getPropertyValue("line-height"));
    body.style.height = `${Math.min(order.length * rowHeight, MAX_HEIGHT)}px`;
  }

  function goTo(position) {
    active = Math.max(0, Math.min(order.length - 1, position));
    const { view, scale } = extent();
    const top = active * rowHeight;
    const least = top + rowHeight - view;
    const now = scroller.scrollTop * scale;
    if (top < now) scroller.scrollTop = top / scale;
    else if (least > now) scroller.scrollTop = Math.ceil(least / scale);
    render();
    const row = rendered.get(active);
    row.focus({ preventScroll: true });
    makeRoom();
    row.scrollIntoView({ block: "nearest" });
  }

  /* The row with the focus shows all of its text, over the rows below it; below the last one there must be room. */
  function makeRoom() {
    const row = rendered.get(active);
    const bottom = row.offsetTop + row.offsetHeight;
    if (bottom > body.offsetHeight) body.style.height = `${bottom}px`;
  }

  const steps = {
    ArrowDown: () => active + 1,
    ArrowUp: () => active - 1,
    PageDown: () => active + Math.max(1, Math.floor(extent().view / rowHeight)),
    PageUp: () => active - Math.max(1, Math.floor(extent().view / rowHeight)),
    Home: () => 0,
    End: () => order.length - 1,
  };
  body.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in steps) {
      event.preventDefault();
      goTo(steps[event.key]());
    } else if (event.key === "Enter" && event.target.matches("tr")) event.target.querySelector("a")?.click();
  });
  body.addEventListener("focusin", (event) => {
    const row = event.target.closest("tr");
    active = Number(row.getAttribute("aria-rowindex")) - 2;
    for (const [position, other] of rendered) other.tabIndex = position === active ? 0 : -1;
    if (isPlaced(active)) makeRoom();
    else goTo(active);
  });
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", chip.getAttribute("aria-pressed") === "true" ? "false" : "true");
      filter();
    });
  }
  search.addEventListener("input", filter);
  for (const heading of headings) {
    const button = heading.querySelector("button");
    if (button) button.addEventListener("click", () => sortBy(heading, button.dataset.column));
  }
  scroller.addEventListener("scroll", render, { passive: true });
  new ResizeObserver(() => {
    resize();
    render();
    if (body.contains(document.activeElement)) makeRoom();
  }).observe(scroller);
  addEventListener("beforeprint", () => {
    put(0, Math.min(order.length, MAX_PRINTED), 0);
    if (order.length > MAX_PRINTED) describe(`, the first ${MAX_PRINTED} of them in print`);
  });
  addEventListener("afterprint", () => {
    describe("");
    render();
  });
  filter();
})();
