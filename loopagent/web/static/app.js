// What the pages can do beyond plain forms: shortcuts, drafts, local times. Nothing here writes HTML.
"use strict";

const typing = (element) => element.closest("input, textarea, select, [contenteditable]") !== null;
const announce = (text) => { document.getElementById("announce").textContent = text; };

// ---- times in the reader's zone
const localTimes = () => {
  for (const time of document.querySelectorAll("time[datetime]")) {
    time.title = new Date(time.dateTime).toLocaleString(undefined, { timeZoneName: "short" });
  }
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const place of document.querySelectorAll("[data-zone]")) place.textContent = `your time, ${zone}`;
};

// ---- drafts: what was typed survives a reload, and is gone once it was sent
const draftKey = (form) => `draft ${form.dataset.draft}`;
const fieldsOf = (form) => [...form.elements].filter((one) => one.name && one.type !== "hidden" && one.tagName !== "BUTTON");
const keepDraft = (form) => {
  const kept = fieldsOf(form).map((one) => (["checkbox", "radio"].includes(one.type) ? one.checked : one.value));
  sessionStorage.setItem(draftKey(form), JSON.stringify(kept));
};
const restoreDraft = (form) => {
  const kept = JSON.parse(sessionStorage.getItem(draftKey(form)) ?? "null");
  const fields = fieldsOf(form);
  if (!Array.isArray(kept) || kept.length !== fields.length) return;
  fields.forEach((one, at) => {
    if (["checkbox", "radio"].includes(one.type)) one.checked = kept[at];
    else one.value = kept[at];
    one.dispatchEvent(new Event("input", { bubbles: true }));
  });
};
const useDrafts = () => {
  const form = document.querySelector("form[data-draft]");
  if (!form) return;
  if (!("open" in form.dataset)) { sessionStorage.removeItem(draftKey(form)); return; }
  if (!document.getElementById("refused")) restoreDraft(form);
  form.addEventListener("input", () => keepDraft(form));
};

// ---- deciding: once, and only when meant
const guardDecision = (event) => {
  const button = event.submitter;
  if (!button) return;
  if (!navigator.onLine) {
    event.preventDefault();
    announce("You are offline; nothing was sent.");
    return;
  }
  if (button.dataset.sure && !confirm(button.dataset.sure)) { event.preventDefault(); return; }
  const needed = button.dataset.needs && document.getElementById(button.dataset.needs);
  if (needed && !needed.value.trim()) {
    event.preventDefault();
    needed.setAttribute("aria-invalid", "true");
    needed.focus();
    announce("Say what should be different.");
    return;
  }
  if (event.target.dataset.sending) { event.preventDefault(); return; }
  event.target.dataset.sending = "yes";
  button.setAttribute("aria-busy", "true");
};

// ---- shortcuts
let before = "";
const rows = () => [...document.querySelectorAll("[data-rows] .row-title")];
const move = (by) => {
  const all = rows();
  const at = all.indexOf(document.activeElement);
  all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
};
const places = { i: "/", r: "/runs", a: "/agents" };
const keys = {
  "?": () => document.getElementById("help").showModal(),
  j: () => move(1),
  k: () => move(-1),
  "/": () => document.querySelector("[data-search]")?.focus(),
  r: () => document.getElementById("feedback")?.focus(),
  e: () => {
    const edit = document.querySelector("[data-edit]");
    if (edit) { edit.open = true; edit.querySelector("textarea").focus(); }
  },
  a: (again) => {
    const button = document.querySelector("[data-key='a']");
    if (!button) return;
    if (again) button.click();
    else { button.focus(); announce("Press a again to approve."); }
  },
};
const press = (event) => {
  if (event.key === "Escape" && typing(event.target) && !event.defaultPrevented) event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const goes = before === "g" && places[event.key];
  const again = before === event.key;
  before = event.key;
  if (goes) { location.assign(goes); return; }
  const act = keys[event.key];
  if (act) { event.preventDefault(); act(again); }
  if (again) before = "";
};

// ---- without a connection nothing is sent, and what was typed stays
const connected = () => {
  document.getElementById("offline").hidden = navigator.onLine;
  if (navigator.onLine) announce("");
};
window.addEventListener("offline", connected);
window.addEventListener("online", connected);

// ---- the title says how much is open, also after the list was fetched anew
const title = () => {
  const count = Number(document.querySelector("[data-count]")?.dataset.count ?? -1);
  if (count >= 0) document.title = `${count ? `(${count}) ` : ""}Inbox · loopagent`;
};

// ---- a card that was left for a while is looked at anew
document.addEventListener("visibilitychange", () => {
  const standing = document.getElementById("standing");
  if (standing && !document.hidden) htmx.trigger(standing, "refresh");
});

function showWhere() { // on a phone the page that is open may lie behind the edge of the menu
  const nav = document.querySelector(".top nav"), here = nav?.querySelector("[aria-current]");
  const behind = here ? here.getBoundingClientRect().right - nav.getBoundingClientRect().right : 0;
  if (behind > 0) nav.scrollLeft += behind + 16;
}

// ---- how much waits, on every page and also in a tab that is not looked at
const badge = async () => {
  const place = document.getElementById("badge");
  if (!place || document.querySelector("[data-count]")) return;
  const answer = await fetch("/api/v1/inbox").catch(() => null);
  if (!answer?.ok) return;
  const { open } = await answer.json();
  place.textContent = open;
  place.hidden = !open;
  document.title = `${open ? `(${open}) ` : ""}${document.title.replace(/^\(\d+\) /, "")}`;
};
setInterval(badge, 30_000);

// ---- a run as it goes on: text as it is written, and the page anew when something was decided
const QUIET = new Set(["reply.delta", "reply.snapshot", "action.progress", "loop.progress", "run.idle"]);
const ENDS = new Set(["run.completed", "run.failed", "run.cancelled"]);
let refreshing = 0;
let unseen = 0;
const following = () => document.getElementById("follow")?.checked ?? true;
const refresh = () => {
  if (!following()) {
    unseen += 1;
    document.getElementById("unfollowed").textContent = `(${unseen} since)`;
    return;
  }
  clearTimeout(refreshing);
  refreshing = setTimeout(() => htmx.trigger(document.getElementById("run"), "refresh"), 150);
};
const showText = (text, whole) => {
  const place = document.getElementById("streamed");
  if (!place) return;
  place.textContent = whole ? text : place.textContent + text;
  document.getElementById("streaming").hidden = !place.textContent;
};
const hear = (event) => {
  const message = JSON.parse(event.data);
  const { type, data } = message;
  if (type === "reply.delta" && (data.field ?? "message") === "message") showText(data.text ?? "", false);
  else if (type === "reply.snapshot") showText(data.text ?? data.fields?.message ?? "", true);
  else if (type === "turn.started" || type === "reply.received" || type === "reply.withheld") showText("", true);
  if (type === "loop.progress") {
    const place = message.runId === document.getElementById("live").dataset.run && document.querySelector("#run [data-looping]");
    if (place) {
      place.querySelector("[data-loop]").textContent = `${data.done}${data.passes ? ` of ${data.passes}` : ""} done${data.failed ? `, ${data.failed} failed` : ""}`;
      const bar = place.querySelector("progress");
      if (bar) bar.value = data.done + data.failed;
    }
  }
  if (type === "run.state" && data.ask) announce(data.state === "resumable" ? data.ask.title : `Waits: ${data.ask.title}`);
  if (ENDS.has(type) && message.runId === document.getElementById("live").dataset.run) announce("The run has ended.");
  if (!QUIET.has(type)) refresh();
};
const listen = () => {
  const live = document.getElementById("live");
  if (!live) return;
  let source;
  let last = Number(live.dataset.after);
  const open = () => {
    source = new EventSource(`${live.dataset.stream}?after=${last}`);
    const take = (event) => {
      if (event.lastEventId) last = Number(event.lastEventId);
      hear(event);
      const message = JSON.parse(event.data);
      if (ENDS.has(message.type) && message.runId === live.dataset.run) source.close();
    };
    for (const type of live.dataset.types.split(" ")) source.addEventListener(type, take);
    source.addEventListener("stream.reset", () => location.reload());
    source.addEventListener("access.ended", () => location.reload()); // asks to sign in again
  };
  open();
  // a hidden tab gives its connection back: browsers have six for a server
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) source.close();
    else if (source.readyState === EventSource.CLOSED && document.getElementById("run").dataset.state !== "idle") { open(); refresh(); }
  });
  window.addEventListener("pagehide", () => source.close());
  window.addEventListener("online", () => {
    if (source.readyState === EventSource.CLOSED) open();
    refresh();
  });
};

// ---- the editor of an action: line numbers, lint that leads to its line, nothing lost by leaving
const numberLines = (text) => {
  const gutter = document.getElementById("gutter");
  const count = text.value.split("\n").length;
  if (gutter.dataset.count === String(count)) return;
  gutter.dataset.count = String(count);
  gutter.textContent = Array.from({ length: count }, (_, at) => at + 1).join("\n");
};
const goToLine = (line) => {
  const text = document.getElementById("text");
  const lines = text.value.split("\n");
  const from = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  text.focus();
  text.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
  text.scrollTop = (line - 6) * parseFloat(getComputedStyle(text).lineHeight);
  text.scrollLeft = 0;
};
const settle = (form) => {
  // what the server drew is what the fields hold, except where somebody is typing
  for (const one of form.querySelectorAll("#form input, #form select, #form textarea")) {
    if (one === document.activeElement || one.type === "hidden") continue;
    if (one.type === "checkbox") one.checked = one.defaultChecked;
    else if (one.tagName === "SELECT") one.selectedIndex = Math.max(0, [...one.options].findIndex((each) => each.defaultSelected));
    else if (one.value !== one.defaultValue) one.value = one.defaultValue;
  }
};
const useEditor = () => {
  const form = document.querySelector("form[data-editor]");
  if (!form) return;
  const text = document.getElementById("text");
  numberLines(text);
  const line = Number(new URLSearchParams(location.search).get("line"));
  if (line > 0) goToLine(line);
  text.addEventListener("input", () => numberLines(text));
  text.addEventListener("scroll", () => { document.getElementById("gutter").scrollTop = text.scrollTop; });
  form.addEventListener("click", (event) => {
    const link = event.target.closest("[data-line]");
    if (!link) return;
    event.preventDefault();
    goToLine(Number(link.dataset.line));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.querySelector("[data-save]")?.click();
  });
  form.addEventListener("htmx:before:morph:attr", (event) => {
    if (event.detail.attrName === "open") event.preventDefault();
  });
  document.addEventListener("htmx:after:swap", () => { settle(form); numberLines(text); });
  window.addEventListener("beforeunload", (event) => {
    const unsaved = document.querySelector("#bench[data-unsaved]");
    if (unsaved && !form.dataset.sending) event.preventDefault();
  });
};

// ---- lists to pick from: narrowed while something is typed, and how many are picked
const narrow = (input) => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll(`#${input.dataset.filter} [data-words]`)) {
    row.hidden = !words.every((one) => row.dataset.words.includes(one));
  }
};
const countPicked = () => {
  for (const place of document.querySelectorAll("[data-picked]")) {
    const boxes = [...document.querySelectorAll(`#${place.dataset.picked} input[name="pick"]`)];
    const picked = boxes.filter((one) => one.checked).length;
    place.textContent = `${picked} of ${boxes.length} picked`;
  }
};

document.addEventListener("keydown", press);
document.addEventListener("submit", guardDecision);
document.addEventListener("change", (event) => {
  if (event.target.id !== "follow") return;
  sessionStorage.setItem("follow", event.target.checked ? "yes" : "no");
  if (event.target.checked) { unseen = 0; refresh(); }
});
// ---- whether the page of a run renews itself while somebody reads; kept for the next page too
const useFollow = () => {
  const box = document.getElementById("follow-box");
  if (!box) return;
  box.hidden = false;
  document.getElementById("follow").checked = sessionStorage.getItem("follow") !== "no";
};
document.addEventListener("input", (event) => {
  const shown = event.target.dataset?.shown && document.getElementById(event.target.dataset.shown);
  if (shown) shown.textContent = event.target.value;
  const box = event.target.id && document.querySelector(`[data-follows="${CSS.escape(event.target.id)}"]`);
  if (box && event.isTrusted) box.checked = event.target.value !== event.target.defaultValue;
  if (event.target.dataset?.filter) narrow(event.target);
  if (event.target.name === "pick") countPicked();
});
document.addEventListener("htmx:after:swap", () => { localTimes(); title(); useFollow(); });
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sending]")) delete form.dataset.sending;
  for (const button of document.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
});

const help = document.getElementById("help-open");
help.hidden = false;
help.addEventListener("click", keys["?"]);
connected();
badge().then(showWhere);
localTimes();
countPicked();
useDrafts();
useFollow();
useEditor();
listen();
document.getElementById("refused")?.focus();
