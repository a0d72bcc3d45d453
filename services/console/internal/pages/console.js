// Enhancements of the pages: shortcuts, suggestions, live updates, countdowns, dragging in the calendar, and charts. All pages
// work without this script.
"use strict";
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // Shortcuts: / moves the focus to the search. Any other letter selects the element that declares it. Shortcuts are disabled
  // during text input.
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") all("details[data-close][open]").forEach((d) => { d.open = false; });
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, select, textarea, [contenteditable]")) return;
    const to = all("[data-key]").find((el) => el.dataset.key === e.key && el.getClientRects().length > 0);
    if (!to) return;
    e.preventDefault();
    to.focus();
    if (to.matches("a, button")) to.click();
  });
  document.addEventListener("click", (e) => {
    all("details[data-close][open]").forEach((d) => { if (!d.contains(e.target)) d.open = false; });
  });

  // A form is submitted once: its button is disabled after the first click. Going back to the page enables it again.
  document.addEventListener("submit", (e) => {
    const buttons = all("button", e.target);
    setTimeout(() => buttons.forEach((b) => { b.disabled = true; }));
    setTimeout(() => buttons.forEach((b) => { b.disabled = false; }), 5000);
  });
  addEventListener("pageshow", () => all("button:disabled").forEach((b) => { b.disabled = false; }));

  // A file that is too large is not sent: the gateway would refuse the request without a page.
  document.addEventListener("change", ({ target }) => {
    if (target.dataset.maxBytes) target.setCustomValidity(target.files[0]?.size > target.dataset.maxBytes ? target.dataset.tooLarge : "");
  });

  // Holds have a countdown in seconds.
  const countdown = () => {
    for (const el of all("[data-until]")) {
      const left = Math.max(0, Math.floor((new Date(el.dataset.until) - Date.now()) / 1000));
      if (left > 86400) continue;
      el.dataset.text ??= el.textContent; // for print
      const h = Math.floor(left / 3600), m = Math.floor((left % 3600) / 60), s = left % 60;
      el.textContent = (h ? h + ":" + String(m).padStart(2, "0") : m) + ":" + String(s).padStart(2, "0");
    }
  };
  setInterval(countdown, 1000);

  // The calendar: a booking can be dragged to another unit, day, or time, and its end to another time. The server decides whether
  // to accept the change.
  const drag = (calendar) => {
    let held = null;
    calendar.addEventListener("dragstart", (e) => {
      held = e.target.closest("[draggable]");
      e.dataTransfer.effectAllowed = "move";
      e.dataTransfer.setData("text/plain", bookingOf(held));
    });
    const bookingOf = (el) => el.closest("a").getAttribute("href").split("/").pop();
    const target = (e) => e.target.closest("[data-drop]");
    calendar.addEventListener("dragover", (e) => {
      if (!held || !target(e)) return;
      e.preventDefault();
      all(".drop", calendar).forEach((el) => el.classList.remove("drop"));
      target(e).classList.add("drop");
    });
    calendar.addEventListener("dragend", () => {
      all(".drop", calendar).forEach((el) => el.classList.remove("drop"));
      held = null;
    });
    // A dropped end snaps to a quarter of an hour.
    const endAt = (cell, x) => {
      const box = cell.getBoundingClientRect(), quarters = Math.max(1, Math.round((x - box.left) / box.width * 4));
      const minutes = (Number((cell.dataset.time || "0").slice(0, 2)) * 60 + quarters * 15) % 1440;
      return String(Math.floor(minutes / 60)).padStart(2, "0") + ":" + String(minutes % 60).padStart(2, "0");
    };
    calendar.addEventListener("drop", (e) => {
      const to = target(e);
      if (!held || !to) return;
      e.preventDefault();
      const form = $("#move");
      const dayOf = (td) => td.matches("td") ? td.closest("table").rows[0].cells[td.cellIndex].dataset.day : "";
      form.action = form.dataset.base + bookingOf(held) + "/move";
      for (const [name, value] of Object.entries({
        version: held.dataset.version, unit_id: to.closest("[data-unit]").dataset.unit, event_date: dayOf(to) || held.dataset.day,
        start: held.dataset.grip ? endAt(to, e.clientX) : to.dataset.time || "", grip: held.dataset.grip || "",
      })) form.elements[name].value = value;
      form.requestSubmit();
    });
  };

  // Charts: the table next to a chart contains its figures, for screen readers and browsers without this script.
  const draw = (el) => {
    if (!window.uPlot) return;
    const rows = all("tbody tr", document.getElementById(el.dataset.chart)).map((tr) => all("[data-value]", tr).map((td) => Number(td.dataset.value)));
    if (!rows.length) return;
    const css = getComputedStyle(document.documentElement), ink = css.getPropertyValue("--color-base-content"), line = css.getPropertyValue("--color-base-300");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const options = {
      width: el.clientWidth, height: 220, legend: { show: false }, cursor: { drag: { x: false } },
      scales: { y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.05 : 1] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map((t) => new Date(t * 1000).toLocaleDateString(document.documentElement.lang, { day: "numeric", month: "short", timeZone: "UTC" })) }, { ...axis, size: 60 }],
      series: [{}, { stroke: css.getPropertyValue("--color-primary"), width: 2, fill: "transparent", points: { show: false } }],
    };
    const plot = new window.uPlot(options, rows[0].map((_, i) => rows.map((r) => r[i])), el);
    new ResizeObserver(() => plot.setSize({ width: el.clientWidth, height: 220 })).observe(el); // it ends with its element, when the page is reloaded
  };

  // Live pages: when the server reports a change, the content is reloaded. Input in progress is never replaced.
  const live = (address) => {
    let source, wait = 0;
    const refresh = () => {
      if (document.activeElement?.closest("main form") || $(".drop")) return;
      left = $("[data-calendar]")?.scrollLeft;
      window.htmx?.ajax("GET", location.href, { target: "#content", select: "#content", swap: "outerHTML" });
    };
    const open = () => {
      source = new EventSource(address);
      source.addEventListener("change", () => { clearTimeout(wait); wait = setTimeout(refresh, 300); });
    };
    open();
    addEventListener("pagehide", () => source.close());
    addEventListener("pageshow", (e) => { if (e.persisted) open(); });
  };

  // A calendar initially shows today. After a reload, it keeps its scroll position.
  let left;
  const place = (calendar) => {
    if (left === undefined) $("[data-today]", calendar)?.scrollIntoView({ inline: "center", block: "nearest" });
    else calendar.scrollLeft = left;
  };

  const start = () => {
    all("[data-calendar]").forEach(drag);
    all("[data-calendar]").forEach(place);
    all("[data-chart]").forEach(draw);
    countdown();
  };
  start();
  document.addEventListener("htmx:after:swap", start);
  if (document.body.dataset.live && window.EventSource) live(document.body.dataset.live);
})();
