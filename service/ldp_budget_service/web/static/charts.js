/* Charts as inline SVG, built through the DOM. Each is drawn for its width and has a label in words. The table under a
   chart has its data. */

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes and children. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** Round numbers from 0 up to at least `most`, about `count` of them. */
export function ticks(most, count = 4) {
  if (!(most > 0)) return [0, 1];
  const rough = most / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough));
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, at) => at * step);
}

/** Round numbers from `low` or less up to `high` or more, a few of them. */
export function span(low, high) {
  const rough = (high - low || Math.abs(high) || 1) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, at) => (first + at) * step);
}

const { lang } = document.documentElement;
const number = new Intl.NumberFormat(lang);
const shown = new WeakMap();

/** Draw into a figure now, and again when its width changes. `draw(width)` returns an element. */
export function drawn(figure, draw) {
  const known = shown.get(figure);
  const state = known ?? { draw, width: 0, picture: null };
  state.draw = draw;
  const render = () => {
    const width = Math.floor(figure.clientWidth);
    if (!width) return;
    state.width = width;
    const had = state.picture?.contains(document.activeElement);
    const picture = state.draw(width);
    if (state.picture) state.picture.replaceWith(picture);
    else figure.append(picture);
    state.picture = picture;
    if (had) picture.focus();
  };
  if (!known) {
    shown.set(figure, state);
    new ResizeObserver(() => {
      if (Math.floor(figure.clientWidth) !== state.width) render();
    }).observe(figure);
  }
  render();
}

/** The margins of a chart, for its labels. */
const TOP = 26;
const BOTTOM = 24;
/** The most pixels of a bar or a column: a single day is no wall. */
const WIDEST = 48;

/** The unit of an axis, at the top left. */
const unitLabel = (unit) => svg("text", { x: 0, y: 11 }, unit);

function scaleLeft(parts, most, height, width) {
  const marks = ticks(most);
  const top = marks.at(-1);
  const left = 14 + 7 * number.format(top).length;
  const y = (value) => TOP + (height - TOP - BOTTOM) * (1 - value / top);
  for (const mark of marks) {
    const at = Math.round(y(mark)) + 0.5;
    parts.push(svg("line", { class: mark ? "grid" : "axis", x1: left, x2: width, y1: at, y2: at }));
    parts.push(svg("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, number.format(mark)));
  }
  return { left, y };
}

/**
 * Stacked bars for days. The chart is a slider over the days: `say(at)` describes a day for the pointer, for the arrow
 * keys and for screen readers.
 *
 * `series`: [{ name, class, values }]; `days`: dates as 2026-11-22; `state.at`: the chosen day; `unit`: of the axis.
 */
export function bars({ days, series, label, unit, say, state, choose, height = 206 }) {
  return (width) => {
    const parts = [unitLabel(unit)];
    const totals = days.map((_, at) => series.reduce((sum, each) => sum + each.values[at], 0));
    const { left, y } = scaleLeft(parts, Math.max(0, ...totals), height, width);
    const step = (width - left) / days.length;
    const bar = Math.min(WIDEST, Math.max(1, step > 6 ? step - Math.min(6, step * 0.25) : step - 0.5));
    days.forEach((day, at) => {
      let below = 0;
      for (const each of series) {
        const value = each.values[at];
        if (!value) continue;
        const [bottom, top] = [y(below), y(below + value)];
        const box = { x: left + at * step + (step - bar) / 2, y: top, width: bar, height: Math.max(0.5, bottom - top) };
        parts.push(svg("rect", { class: each.class, rx: Math.min(2, bar / 4), ...box }));
        below += value;
      }
    });
    parts.push(...dayLabels(days, left, step, height));
    const cursor = svg("rect", { class: "cursor", y: TOP, width: step, height: height - TOP - BOTTOM, x: left });
    parts.push(cursor);
    const picture = svg("svg", {
      ...{ role: "slider", tabindex: 0, width, height, viewBox: `0 0 ${width} ${height}` },
      ...{ "aria-label": label, "aria-valuemin": 0, "aria-valuemax": days.length - 1 },
    }, ...parts);
    const go = (at) => {
      state.at = Math.min(days.length - 1, Math.max(0, at));
      cursor.setAttribute("x", left + state.at * step);
      picture.setAttribute("aria-valuenow", state.at);
      picture.setAttribute("aria-valuetext", say(state.at));
      choose(state.at);
    };
    picture.addEventListener("pointermove", (event) => {
      const box = picture.getBoundingClientRect();
      go(Math.floor(((event.clientX - box.left) * (width / box.width) - left) / step));
    });
    picture.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 7, PageDown: -7 };
      if (event.key in steps) go(state.at + steps[event.key]);
      else if (event.key === "Home") go(0);
      else if (event.key === "End") go(days.length - 1);
      else return;
      event.preventDefault();
    });
    go(state.at ?? days.length - 1);
    return picture;
  };
}

const dayName = new Intl.DateTimeFormat(lang, { day: "numeric", month: "short", timeZone: "UTC" });

function dayLabels(days, left, step, height) {
  const every = Math.max(1, Math.ceil(62 / step));
  const found = [];
  for (let at = days.length - 1; at >= 0; at -= every) {
    const x = left + (at + 0.5) * step;
    if (x - 24 < left - 10) break;
    const anchor = at === days.length - 1 && step < 46 ? { x: left + days.length * step, "text-anchor": "end" } : { x, "text-anchor": "middle" };
    found.push(svg("text", { y: height - 6, ...anchor }, dayName.format(new Date(`${days[at]}T00:00Z`))));
  }
  return found;
}

/** Columns over classes: `bins`: [{ label, value, class, say }]; `unit`: of their heights. */
export function columns({ bins, label, unit, height = 166 }) {
  return (width) => {
    const parts = [unitLabel(unit)];
    const most = Math.max(1, ...bins.map((bin) => bin.value));
    const step = width / bins.length;
    const y = (value) => 34 + (height - 34 - BOTTOM) * (1 - value / most);
    bins.forEach((bin, at) => {
      const top = bin.value ? Math.min(y(bin.value), height - BOTTOM - 2) : height - BOTTOM;
      const wide = Math.min(WIDEST, step - 3);
      const box = { x: (at + 0.5) * step - wide / 2, y: top, width: wide, height: height - BOTTOM - top };
      parts.push(svg("rect", { class: bin.class, rx: 2, ...box }, svg("title", {}, bin.say)));
      const middle = { x: (at + 0.5) * step, "text-anchor": "middle" };
      if (bin.value) parts.push(svg("text", { class: "value", y: top - 5, ...middle }, number.format(bin.value)));
      parts.push(svg("text", { y: height - 7, ...middle }, bin.label));
    });
    parts.push(svg("line", { class: "axis", x1: 0, x2: width, y1: height - BOTTOM + 0.5, y2: height - BOTTOM + 0.5 }));
    return svg("svg", { role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` }, ...parts);
  };
}

/** The square of a legend, in the colour of a class. */
export function swatch(name) {
  return svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("rect", { class: name, width: 10, height: 10, rx: 2 }));
}

/**
 * Points with their intervals, one below the other: `rows`: [{ name, value, low, high, say }]; `format` writes a
 * value, and the axis goes from `least` or below, in a `unit`. From a `least` of 0 on, bars lead to the points.
 */
export function intervals({ rows, label, format, unit, least = Infinity }) {
  return (width) => {
    const parts = [];
    const line = 28;
    const longest = Math.max(...rows.map((row) => row.name.length));
    const room = longest ? Math.min(width * 0.38, 14 + 7.2 * longest) : 14;
    const right = 64;
    const all = rows.flatMap((row) => [row.low, row.high, row.value]);
    const marks = span(Math.min(least, ...all), Math.max(...all));
    const [low, high] = [marks[0], marks.at(-1)];
    const x = (value) => room + (width - room - right) * ((value - low) / (high - low));
    const height = rows.length * line + BOTTOM + 16;
    parts.push(svg("text", { x: room, y: height - 4 }, unit));
    for (const mark of marks) {
      const at = Math.round(x(mark)) + 0.5;
      parts.push(svg("line", { class: Math.abs(mark) < 1e-12 ? "axis" : "grid", x1: at, x2: at, y1: 0, y2: rows.length * line }));
      parts.push(svg("text", { x: at, y: height - 22, "text-anchor": "middle" }, format(mark)));
    }
    rows.forEach((row, at) => {
      const y = at * line + line / 2;
      const name = row.name.length * 7.2 > room ? `${row.name.slice(0, Math.floor(room / 7.2) - 1)}…` : row.name;
      parts.push(svg("text", { class: "value", x: 0, y: y + 4 }, name));
      if (least === 0) parts.push(svg("rect", { class: "share", x: x(0), y: y - 8, width: Math.max(0, x(row.value) - x(0)), height: 16, rx: 2 }));
      parts.push(svg("line", { class: "interval", x1: x(row.low), x2: x(row.high), y1: y, y2: y }));
      parts.push(svg("circle", { class: "dot", cx: x(row.value), cy: y, r: 5 }, svg("title", {}, row.say)));
      parts.push(svg("text", { class: "value", x: width, y: y + 4, "text-anchor": "end" }, format(row.value)));
    });
    return svg("svg", { role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` }, ...parts);
  };
}

/** One answer over rounds: points with their intervals from left to right, `points`: [{ name, value, low, high }]. */
export function trend({ points, label, format, marks, height = 130 }) {
  return (width) => {
    const parts = [];
    const [top, bottom, left] = [8, height - BOTTOM, 56];
    const [least, most] = [marks[0], marks.at(-1)];
    const y = (value) => bottom - (bottom - top) * ((value - least) / (most - least));
    const x = (at) => left + 12 + (width - left - 24) * (points.length > 1 ? at / (points.length - 1) : 0.5);
    for (const mark of marks) {
      const at = Math.round(y(mark)) + 0.5;
      parts.push(svg("line", { class: Math.abs(mark) < 1e-12 ? "axis" : "grid", x1: left, x2: width, y1: at, y2: at }));
      parts.push(svg("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, format(mark)));
    }
    const known = points.map((each, at) => ({ ...each, at })).filter((each) => each.value !== undefined);
    parts.push(svg("polyline", { class: "trend", points: known.map((each) => `${x(each.at)},${y(each.value)}`).join(" ") }));
    for (const each of known) {
      const at = x(each.at);
      parts.push(svg("line", { class: "interval", x1: at, x2: at, y1: y(each.low), y2: y(each.high) }));
      const said = `${each.name}: ${format(each.value)}, ${format(each.low)} – ${format(each.high)}`;
      parts.push(svg("circle", { class: "dot", cx: at, cy: y(each.value), r: 4 }, svg("title", {}, said)));
    }
    for (const [at, anchor] of [[0, "start"], [points.length - 1, "end"]]) {
      parts.push(svg("text", { x: anchor === "start" ? left : width, y: height - 6, "text-anchor": anchor }, points[at].name));
    }
    return svg("svg", { role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` }, ...parts);
  };
}
