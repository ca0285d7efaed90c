"use strict";
/* Figures are drawn when they come into view, so that the page opens at once whatever it holds. */
(() => {
  const plots = document.querySelectorAll(".plot");
  const documents = new Map();
  const drawn = new Set();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touch = matchMedia("(pointer: coarse)").matches;
  let source = null;
  let library = null;

  /* plotly.js waits as text, where the page holds it: running its 5 MB is put off until the first figure needs it. */
  function plotly() {
    if (library === null) {
      const script = document.createElement("script");
      script.textContent = source;
      document.head.append(script);
      library = window.Plotly;
    }
    return library;
  }

  function figureOf(plot) {
    const { connection, flow, figure } = plot.dataset;
    if (!documents.has(connection)) {
      documents.set(connection, JSON.parse(document.getElementById(`figures-${connection}`).textContent));
    }
    return documents.get(connection)[flow][figure];
  }

  function unpack({ base, step, data }) {
    const text = atob(data);
    const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const values = new Array(bytes.length / 4);
    for (let i = 0; i < values.length; i += 1) {
      const steps = view.getUint32(4 * i, true);
      values[i] = steps === 0xffffffff ? null : base + step * steps;
    }
    return values;
  }

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const named = (name) => style.getPropertyValue(`--${name}`).trim();
    return { named, ink: named("ink"), faint: named("faint"), rule: named("rule"), surface: named("surface") };
  }

  function paint(trace, { named }) {
    const colour = named(`trace-${trace.role}`);
    const painted = {
      type: "scatter",
      name: trace.label,
      x: unpack(trace.x),
      y: unpack(trace.y),
      hovertemplate: "%{x:.6~f}, %{y}<extra>%{fullData.name}</extra>",
    };
    if (trace.mode === "points") {
      const violation = trace.role === "violation";
      const hollow = trace.role === "receiver-data";
      painted.mode = "markers";
      painted.marker = {
        color: colour,
        size: violation ? 7 : 4,
        symbol: violation ? "x-thin" : trace.role === "ack" ? "triangle-up" : hollow ? "square" : "circle",
        opacity: violation ? 1 : 0.75,
        line: violation ? { color: colour, width: 1.5 } : { width: 0 },
      };
    } else {
      painted.mode = "lines";
      painted.line = { color: colour, width: trace.mode === "line" ? 2 : 1.5 };
      if (trace.mode === "line") painted.line.dash = "dash";
      if (trace.mode === "steps") painted.line.shape = "hv";
      if (trace.role === "sender-ack") painted.line.dash = "dot";
      if (trace.mode === "area") {
        painted.fill = "tozeroy";
        painted.line.shape = "hvh";
      }
    }
    return painted;
  }

  /* A logarithmic axis: tens, with 2 and 5 where it spans few; one that spans less than one stays linear. */
  function decades(figure, axis) {
    const values = figure.traces.flatMap((trace) => unpack(trace[axis])).filter((value) => value > 0);
    const spanned = values.length > 0 ? Math.log10(Math.max(...values) / Math.min(...values)) : 0;
    if (spanned < 1) return {};
    const ticks = [];
    for (let power = -3; power < 6; power += 1) {
      for (const digit of spanned > 3 ? [1] : [1, 2, 5]) ticks.push(digit * 10 ** power);
    }
    return { type: "log", tickvals: ticks, ticktext: ticks.map((tick) => String(Number(tick.toPrecision(1)))) };
  }

  function draw(plot) {
    const figure = figureOf(plot);
    const palette = colours();
    const axis = {
      gridcolor: palette.rule,
      zeroline: false,
      linecolor: palette.faint,
      automargin: true,
      title: { standoff: 8, font: { size: 12 } },
      nticks: plot.clientWidth < 480 ? 5 : 8,
    };
    const style = getComputedStyle(plot);
    const layout = {
      autosize: true,
      height: plot.clientHeight - parseFloat(style.paddingTop),
      margin: { l: 12, r: 12, t: 8, b: 8 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: palette.ink },
      hoverlabel: { bgcolor: palette.surface, font: { color: palette.ink } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: palette.faint, activecolor: palette.ink },
      dragmode: touch ? false : "zoom",
      showlegend: figure.traces.length > 1,
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", itemsizing: "constant", font: { size: 12 } },
      xaxis: { ...axis, title: { ...axis.title, text: figure.x } },
      yaxis: {
        ...axis,
        title: { ...axis.title, text: figure.y },
        hoverformat: ".6~f",
        rangemode: figure.zero ? "tozero" : "normal",
      },
    };
    if (figure.log.includes("x")) layout.xaxis = { ...layout.xaxis, ...decades(figure, "x") };
    if (figure.log.includes("y")) layout.yaxis = { ...layout.yaxis, ...decades(figure, "y"), rangemode: "normal" };
    if (figure.rows.length > 0) {
      layout.yaxis = {
        ...layout.yaxis,
        tickvals: figure.rows.map((_, place) => place),
        ticktext: figure.rows,
        range: [figure.rows.length - 0.5, -0.5],
        hoverformat: "",
      };
      layout.xaxis.rangemode = "tozero";
    }
    const config = {
      responsive: true,
      displaylogo: false,
      displayModeBar: touch ? false : "hover",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
      showSendToCloud: false,
    };
    plotly().react(plot, figure.traces.map((trace) => paint(trace, palette)), layout, config);
    drawn.add(plot);
    plot.dataset.drawn = "yes";
  }

  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) {
          seen.unobserve(entry.target);
          draw(entry.target);
        }
      }
    },
    { rootMargin: "300px" },
  );
  /* A page of a site shares the library with the others. */
  function load(address) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.addEventListener("load", () => {
        library = window.Plotly;
        resolve();
      });
      script.addEventListener("error", () => reject(new Error(`${address} cannot be loaded`)));
      script.src = address;
      document.head.append(script);
    });
  }

  /* Chromium lays out what is folded away; only `checkVisibility` tells that it is. */
  function isOpen(plot) {
    return plot.checkVisibility === undefined ? plot.offsetParent !== null : plot.checkVisibility();
  }

  /*
   * What is open is drawn one figure after the other, so that it needs no scrolling: pictures and prints of the page
   * show all of it. What a reader folds out is drawn when it comes into view.
   */
  function drawOpen(finished) {
    const next = Array.from(plots).find((plot) => !drawn.has(plot) && isOpen(plot));
    if (next === undefined) {
      finished();
      return;
    }
    seen.unobserve(next);
    draw(next);
    setTimeout(drawOpen, 0, finished);
  }

  /*
   * The page counts as loading until then: who takes a picture of it waits for that. A document inside it that is open
   * for writing holds its load event back.
   */
  function holdLoading() {
    if (document.readyState === "complete") return () => {};
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    if (frame.contentDocument === null) {
      /* The page is shown without an origin of its own (CSP sandbox), and may not write into a document inside it. */
      frame.remove();
      return () => {};
    }
    frame.contentDocument.open();
    return () => {
      frame.contentDocument.close();
      frame.remove();
    };
  }

  /* The library is the last thing in the file: a figure in view must wait until the file has been read to its end. */
  async function begin() {
    if (plots.length === 0) return;
    const release = holdLoading();
    try {
      await unpackLibrary();
    } catch (error) {
      release();
      throw error;
    }
    plots.forEach((plot) => seen.observe(plot));
    drawOpen(release);
  }

  async function unpackLibrary() {
    const packed = document.getElementById("plotly-source");
    if (packed.dataset.address === undefined) source = new TextDecoder().decode(await inflate(packed.textContent));
    else await load(packed.dataset.address);
    packed.remove();
  }
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", begin);
  else begin();
  dark.addEventListener("change", () => drawn.forEach(draw));
  /* A print holds what is open, drawn or not yet. */
  addEventListener("beforeprint", () => {
    if (source === null && library === null) return;
    plots.forEach((plot) => {
      if (!drawn.has(plot) && isOpen(plot)) draw(plot);
    });
  });
})();
