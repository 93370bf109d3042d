// Draws the snapshots, and zooms and moves them by pointer and by keys.
//
// A snapshot is data (html/timeline.rs): for each program its spans as whole numbers, each since the end of the one
// before. Without this script, and on paper, the page shows a still picture instead.
"use strict";
(() => {
  const root = document.documentElement;
  const runs = JSON.parse(document.getElementById("runs").textContent);
  const tip = document.getElementById("tip");
  const colour = name => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const SERIES = 6;

  function decode(run) {
    const lane = flat => {
      const from = [], to = [], set = [];
      let at = 0;
      for (let i = 0; i < flat.length; i += 3) {
        from.push((at += flat[i]) / run.unit);
        to.push((at += flat[i + 1]) / run.unit);
        set.push(flat[i + 2]);
      }
      return { from, to, set };
    };
    let at = 0;
    return { ...run, lanes: run.spans.map(lane), begins: run.quanta.map(gap => (at += gap) / run.unit) };
  }

  // How many of the ascending values are not above x.
  function upTo(values, x) {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] > x) high = middle; else low = middle + 1;
    }
    return low;
  }

  // Black or white, whichever can be read on a colour.
  function inkOn(hex) {
    const light = i => {
      const value = parseInt(hex.slice(i, i + 2), 16) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * light(1) + 0.7152 * light(3) + 0.0722 * light(5) > 0.179 ? "#000" : "#fff";
  }

  function hatch(pen, direction) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const lines = tile.getContext("2d");
    lines.strokeStyle = colour("paper");
    lines.lineWidth = 2;
    for (const shift of [-8, 0, 8]) {
      lines.moveTo(shift - 2, direction > 0 ? -2 : 10);
      lines.lineTo(shift + 10, direction > 0 ? 10 : -2);
    }
    lines.stroke();
    return pen.createPattern(tile, "repeat");
  }

  // A round step so that at most `count` of them fit into a span.
  function step(span, count) {
    const unit = 10 ** Math.floor(Math.log10(span / count));
    return unit * [1, 2, 5, 10].find(factor => factor * unit * count >= span);
  }

  // As much of a text as fits, and a sign that there is more.
  function shortened(pen, text, width) {
    const fits = text => pen.measureText(text).width <= width;
    if (fits(text)) return text;
    const signs = [...text];
    let low = 0, high = signs.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (fits(signs.slice(0, middle).join("") + "…")) low = middle; else high = middle - 1;
    }
    return signs.slice(0, low).join("") + "…";
  }

  function snapshot(box) {
    const run = decode(runs[box.dataset.run]);
    const canvas = box.querySelector("canvas"), where = box.querySelector(".where");
    const pen = canvas.getContext("2d");
    const byProgram = run.rows === "programs";
    const height = Math.min(28, Math.max(5, 240 / run.names.length));
    const top = 4, bottom = top + height * run.names.length;
    const shortest = Math.min(run.total, 0.005);
    let [from, to] = run.window, cursor = null, left = 60, right = 300;

    const x = time => left + (time - from) / (to - from) * (right - left);
    const time = x => from + (x - left) / (right - left) * (to - from);

    function ticks() {
      const size = step(to - from, Math.max(2, (right - left) / 80));
      const digits = Math.max(0, -Math.floor(Math.log10(size) + 1e-9));
      pen.textAlign = "center";
      for (let n = Math.ceil(from / size - 1e-9); n * size <= to + size * 1e-9; n++) {
        pen.fillStyle = colour("line");
        pen.fillRect(x(n * size), top, 1, bottom - top + 4);
        pen.fillStyle = colour("soft");
        pen.fillText((n * size).toFixed(digits) + " s", Math.min(x(n * size), right - 16), bottom + 16);
      }
    }

    function rowNames(width) {
      const every = Math.max(1, Math.ceil(13 / height));
      pen.textAlign = "right";
      pen.fillStyle = colour("ink");
      run.names.forEach((name, i) => {
        if (i % every === 0) pen.fillText(shortened(pen, name, width), left - 8, top + height * (i + 0.5) + 4);
      });
    }

    function blocks() {
      const colours = [...Array(SERIES).keys()].map(i => colour("c" + i));
      const hatches = [hatch(pen, 1), hatch(pen, -1)];
      const paper = colour("paper");
      run.lanes.forEach((lane, i) => {
        const fill = colours[i % SERIES];
        for (let n = upTo(lane.to, from); n < lane.from.length && lane.from[n] < to; n++) {
          const begin = Math.max(x(lane.from[n]), left), end = Math.min(x(lane.to[n]), right);
          for (const [first, last] of byProgram ? [[i, i]] : run.sets[lane.set[n]].rows) {
            const y = top + height * first, high = height * (last - first + 1) - 1;
            pen.fillStyle = fill;
            pen.fillRect(begin, y, end - begin, high);
            if (i >= SERIES) {
              pen.fillStyle = hatches[(Math.floor(i / SERIES) - 1) % 2];
              pen.fillRect(begin, y, end - begin, high);
            }
            const name = run.programs[i];
            if (high >= 13 && end - begin > 14 && pen.measureText(name).width < end - begin - 8) {
              const middle = (begin + end) / 2, width = pen.measureText(name).width;
              if (i >= SERIES) {
                pen.fillStyle = fill;
                pen.fillRect(middle - width / 2 - 3, y + high / 2 - 8, width + 6, 16);
              }
              pen.textAlign = "center";
              pen.fillStyle = inkOn(fill);
              pen.fillText(name, middle, y + high / 2 + 4);
            }
          }
        }
      });
      // Where quanta begin, if there is room for the lines.
      const first = upTo(run.begins, from), last = upTo(run.begins, to);
      if (last - first > 0 && (right - left) / (last - first) > 12) {
        pen.fillStyle = paper;
        for (const begin of run.begins.slice(first, last)) pen.fillRect(x(begin) - 0.5, top, 1, bottom - top);
      }
    }

    function draw() {
      const width = box.clientWidth, scale = window.devicePixelRatio || 1;
      if (width === 0) return;
      canvas.width = width * scale;
      canvas.height = (bottom + 34) * scale;
      canvas.style.height = bottom + 34 + "px";
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.font = "12px system-ui, sans-serif";
      const widest = Math.min(width / 4, Math.max(...run.names.map(name => pen.measureText(name).width)));
      left = widest + 12;
      right = width - 4;
      ticks();
      rowNames(widest);
      blocks();
      if (cursor !== null && cursor >= from && cursor <= to) {
        pen.fillStyle = colour("ink");
        pen.fillRect(x(cursor) - 1, 0, 2, bottom + 4);
      }
      // Which part of the run this is.
      pen.fillStyle = colour("line");
      pen.fillRect(left, bottom + 26, right - left, 5);
      pen.fillStyle = colour("soft");
      const part = (right - left) / run.total;
      pen.fillRect(left + from * part, bottom + 26, Math.max(4, (to - from) * part), 5);
    }

    function view(begin, end) {
      const span = Math.min(run.total, Math.max(shortest, end - begin));
      from = Math.min(Math.max(0, begin), run.total - span);
      to = from + span;
      draw();
      tell();
    }

    // What is at a time, a line each.
    function at(time) {
      const lines = run.lanes.flatMap((lane, i) => {
        const n = upTo(lane.from, time) - 1;
        if (n < 0 || lane.to[n] <= time) return [];
        return run.programs[i] + " on " + run.sets[lane.set[n]].name + " (" + lane.from[n].toFixed(3) + " s to "
          + lane.to[n].toFixed(3) + " s)";
      });
      return [time.toFixed(3) + " s", ...(lines.length ? lines : ["no program runs"])];
    }

    function tell() {
      const range = from.toFixed(2) + " s to " + to.toFixed(2) + " s of " + run.total.toFixed(2) + " s";
      where.textContent = cursor === null ? range : range + ". At " + at(cursor).join("; ") + ".";
    }

    function zoom(factor, around) {
      const centre = around ?? (cursor !== null && cursor >= from && cursor <= to ? cursor : (from + to) / 2);
      const span = Math.min(run.total, Math.max(shortest, (to - from) * factor));
      const share = (centre - from) / (to - from);
      view(centre - share * span, centre + (1 - share) * span);
    }
    const pan = share => view(from + share * (to - from), to + share * (to - from));

    // To the middle of the next quantum (turn), or, without quanta, on by a fiftieth of the picture.
    function move(direction) {
      const now = cursor ?? from;
      if (run.begins.length) {
        const last = run.begins.length - 1;
        const n = Math.min(last, Math.max(0, upTo(run.begins, now) - 1 + (cursor === null ? 0 : direction)));
        cursor = (run.begins[n] + (n < last ? run.begins[n + 1] : run.total)) / 2;
      } else {
        cursor = Math.min(run.total, Math.max(0, now + direction * (to - from) / 50));
      }
      const span = to - from;
      if (cursor < from || cursor > to) view(cursor - span / 2, cursor + span / 2);
      else view(from, to);
    }

    const keys = {
      "+": () => zoom(1 / 2), "=": () => zoom(1 / 2), "-": () => zoom(2), "0": () => view(0, run.total),
      ArrowLeft: () => move(-1), ArrowRight: () => move(1),
      PageUp: () => pan(-0.9), PageDown: () => pan(0.9),
      Home: () => view(0, to - from), End: () => view(run.total - (to - from), run.total),
      Escape: () => { cursor = null; tip.hidden = true; view(from, to); },
    };
    canvas.addEventListener("keydown", event => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    for (const button of box.querySelectorAll("button")) {
      button.addEventListener("click", () => keys[button.dataset.key]());
    }
    canvas.addEventListener("wheel", event => {
      const along = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      const place = canvas.getBoundingClientRect();
      if (event.ctrlKey) zoom(event.deltaY > 0 ? 1.25 : 0.8, time(event.clientX - place.left));
      else if (Math.abs(along) > Math.abs(event.deltaY) || event.shiftKey) pan(along / (right - left));
      else return;
      event.preventDefault();
    }, { passive: false });

    let grip = null;
    canvas.addEventListener("pointerdown", event => {
      grip = { x: event.clientX, from, to, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      const place = canvas.getBoundingClientRect(), t = time(event.clientX - place.left);
      if (grip) {
        const shift = (grip.x - event.clientX) / (right - left) * (grip.to - grip.from);
        grip.moved ||= Math.abs(event.clientX - grip.x) > 4;
        if (grip.moved) view(grip.from + shift, grip.to + shift);
      }
      const row = Math.floor((event.clientY - place.top - top) / height);
      const name = t < from && run.names[row];
      tip.hidden = grip?.moved || t > to || event.clientY - place.top > bottom || (t < from && !name);
      if (tip.hidden) return;
      tip.textContent = name || at(t).join("\n");
      tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4)) + "px";
      const below = event.clientY + 18, fits = below + tip.offsetHeight < innerHeight;
      tip.style.top = (fits ? below : event.clientY - tip.offsetHeight - 10) + "px";
    });
    canvas.addEventListener("pointerup", event => {
      if (grip && !grip.moved) {
        cursor = time(event.clientX - canvas.getBoundingClientRect().left);
        view(from, to);
      }
      grip = null;
    });
    canvas.addEventListener("pointercancel", () => { grip = null; });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    new ResizeObserver(draw).observe(box);
    tell();
    return draw;
  }

  root.classList.add("drawn");
  const draws = [...document.querySelectorAll(".snapshot")].map(snapshot);
  const redraw = () => draws.forEach(draw => draw());
  redraw();
  const night = matchMedia("(prefers-color-scheme: dark)");
  night.addEventListener("change", redraw);
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : night.matches;
    root.dataset.theme = dark ? "light" : "dark";
    redraw();
  });
  root.dataset.milliseconds = Math.round(performance.now());
})();
