// Forms are plain HTML and work without this script. With it a page is replaced in place, so that the reader keeps
// their place, their focus and what they unfolded; a form with data-live is sent while it is being filled in.
"use strict";

const busy = document.createElement("div");
busy.className = "busy";
busy.hidden = true;

function say(text) {
  const status = document.getElementById("status");
  if (status && text) status.textContent = text;
}

function kept() {
  const focus = document.activeElement;
  return {
    id: focus && focus.id,
    at: focus && typeof focus.selectionStart === "number" ? focus.selectionStart : null,
    scroll: window.scrollY,
    scrolled: [...document.querySelectorAll("[data-keep-scroll]")].map((each) => [each.id, each.scrollTop, each.scrollLeft]),
    open: [...document.querySelectorAll("details[id][open]")].map((each) => each.id),
  };
}

// What was typed, and not sent: a page that comes anew, such as when a command has ended, takes none of it away. A form
// is told by where it goes to and what it is about, so that nothing of one column comes into another's.
const touched = new WeakSet();
const about = (form) => [form.getAttribute("action"), ...[...form.elements].filter((each) => each.type === "hidden" && each.name !== "version").map((each) => `${each.name}=${each.value}`)].join("\n");

function typed(sent) {
  return [...document.querySelectorAll("#main form")].filter((form) => (form === sent) === form.hasAttribute("data-search")).flatMap((form) =>
    [...form.elements].filter((field) => touched.has(field)).map((field) => ({ form: about(form), field })));
}

function restore(kept) {
  const forms = new Map([...document.querySelectorAll("#main form")].map((form) => [about(form), form]));
  for (const { form, field } of kept) {
    const fresh = [...(forms.get(form)?.elements || [])].find((each) =>
      each.name === field.name && each.id === field.id && each.type === field.type && (!["checkbox", "radio"].includes(each.type) || each.value === field.value));
    if (!fresh) continue;
    touched.add(fresh);
    if (["checkbox", "radio"].includes(fresh.type)) fresh.checked = field.checked;
    else if (fresh.type === "file") fresh.files = field.files;
    else if (fresh.tagName !== "SELECT" || [...fresh.options].some((each) => each.value === field.value)) fresh.value = field.value;
  }
}

function show(text, address, push, sent) {
  const made = new DOMParser().parseFromString(text, "text/html");
  const main = made.getElementById("main");
  if (!main) { document.location.assign(address); return; }
  const samePage = new URL(address, document.location).pathname === document.location.pathname;
  const before = kept(); // as it is now, and not as it was when the page was asked for
  const unsent = samePage ? typed(sent) : [];
  document.title = made.title;
  for (const part of ["header.head", "#main"]) {
    const [old, fresh] = [document.querySelector(part), made.querySelector(part)];
    if (old && fresh) old.replaceWith(document.adoptNode(fresh));
  }
  if (push) history.pushState({}, "", address);
  else history.replaceState({}, "", address);
  restore(unsent);
  for (const id of before.open) document.getElementById(id)?.setAttribute("open", "");
  const errors = document.getElementById("errors");
  const wanted = samePage && before.id ? document.getElementById(before.id) : null;
  if (errors) errors.focus();
  else if (wanted) {
    wanted.focus({ preventScroll: true });
    if (before.at !== null && wanted.setSelectionRange) try { wanted.setSelectionRange(before.at, before.at); } catch { /* no text */ }
  } else document.getElementById("main").focus({ preventScroll: true });
  if (samePage && !errors) {
    window.scrollTo(0, before.scroll);
    for (const [id, top, left] of before.scrolled) { const each = document.getElementById(id); if (each) { each.scrollTop = top; each.scrollLeft = left; } }
  } else window.scrollTo(0, 0);
  if (new URL(address, document.location).hash) document.querySelector(new URL(address, document.location).hash)?.scrollIntoView();
  const said = made.getElementById("status")?.textContent || "";
  const heard = document.createElement("span"); // the page's name, for those who do not see that it has changed
  heard.className = said ? "" : "unseen";
  heard.textContent = said || (errors ? "" : made.title);
  document.getElementById("status").replaceChildren(heard);
  start(document.getElementById("main"));
}

let current = null;
let taking = false; // a form is on its way: nothing else is taken until the answer is there

function hold(on) {
  taking = on;
  const main = document.getElementById("main");
  if (main) main.inert = on;
}

async function load(address, options, push, sent) {
  current?.abort();
  const mine = current = new AbortController();
  const focus = document.activeElement;
  busy.hidden = false;
  document.getElementById("main").setAttribute("aria-busy", "true");
  if (options.method) hold(true);
  try {
    const answer = await fetch(address, { ...options, signal: mine.signal, credentials: "same-origin" });
    const type = answer.headers.get("content-type") || "";
    if (!type.startsWith("text/html")) { say(type.startsWith("text/plain") ? await answer.text() : ""); return; }
    const where = answer.redirected || !options.method || options.method === "get" ? answer.url : document.location.href;
    const text = await answer.text();
    if (options.method) { hold(false); if (document.activeElement === document.body) focus?.focus({ preventScroll: true }); }
    show(text, where, push && where !== document.location.href, sent);
  } catch (error) {
    if (error.name !== "AbortError") say("The studio does not answer. Start it again with doublure studio.");
  } finally {
    if (options.method && taking) { hold(false); focus?.focus(); }
    if (mine === current) { // a later request shows for itself that it is busy
      busy.hidden = true;
      document.getElementById("main")?.removeAttribute("aria-busy");
    }
  }
}

function send(form, submitter) {
  const data = new FormData(form, submitter);
  if (form.getAttribute("method") === "get") {
    const address = new URL(form.getAttribute("action"), document.location);
    address.search = new URLSearchParams(data).toString();
    return load(address, {}, true, form);
  }
  const body = form.getAttribute("enctype") === "multipart/form-data" ? data : new URLSearchParams(data);
  return load((submitter && submitter.getAttribute("formaction")) || form.getAttribute("action"), { method: "post", body }, false, form);
}

const own = (address) => address.origin === document.location.origin && !address.pathname.startsWith("/static/");

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.hasAttribute("target") || form.hasAttribute("data-plain")) return;
  event.preventDefault();
  if (taking) return;
  if (form.getAttribute("method") !== "get") say("Working …");
  send(form, event.submitter);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || link.target || link.hasAttribute("download") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (link.dataset.plain !== undefined) return;
  const address = new URL(link.href);
  if (!own(address)) return;
  if (taking) { event.preventDefault(); say("Still working: the page comes when it is done."); return; }
  if (address.pathname === document.location.pathname && address.search === document.location.search && address.hash) {
    const field = document.querySelector(`[id="${CSS.escape(address.hash.slice(1))}"]`);
    if (field && field.matches("input, select, textarea")) { event.preventDefault(); field.focus(); }
    return;
  }
  event.preventDefault();
  load(address.href, {}, true);
});

window.addEventListener("popstate", () => load(document.location.href, {}, false));

// A field named "dataset" or "action" hides the form's own property of that name: forms are asked by their attributes.
const told = (form, name) => form && form.getAttribute(name);

// A form with data-live fills the element that it names, 200 ms after the last key.
let timer = null;
const refreshes = new WeakMap();
async function refresh(form) {
  const target = document.getElementById(told(form, "data-live"));
  const address = new URL(told(form, "data-part"), document.location);
  address.search = new URLSearchParams(new FormData(form)).toString();
  target.setAttribute("aria-busy", "true");
  const asked = refreshes.get(form); // what was typed until now: an answer to less is out of date, and not shown
  try {
    const answer = await fetch(address, { credentials: "same-origin" });
    const text = await answer.text();
    if (asked !== refreshes.get(form) || !document.contains(target)) return;
    if (answer.ok) target.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
    else { const said = document.createElement("p"); said.className = "warning"; said.textContent = text; target.replaceChildren(said); }
  } catch { say("The studio does not answer. Start it again with doublure studio."); }
  finally { if (asked === refreshes.get(form)) { target.removeAttribute("aria-busy"); delete target.dataset.stale; } }
}

document.addEventListener("input", (event) => {
  const field = event.target;
  const pair = field.dataset.mirror && document.getElementById(field.dataset.mirror);
  touched.add(field);
  if (pair) touched.add(pair);
  if (pair) pair.value = field.dataset.log !== undefined ? Number((10 ** field.value).toPrecision(2)) : Math.log10(field.value);
  const form = field.form;
  const picked = field.dataset.picks && document.getElementById(field.dataset.picks);
  if (picked) { picked.checked = true; touched.add(picked); }
  const asks = form && (!form.querySelector("[data-asks]") || field.closest("[data-asks]")); // a name changes no figure
  if (asks && told(form, "data-live") && (!told(form, "data-when") || told(form, "data-when") === field.id)) {
    const shown = document.getElementById(told(form, "data-live"));
    shown?.setAttribute("aria-busy", "true"); // heard, before it is asked for
    if (shown) shown.dataset.stale = "";
    refreshes.set(form, (refreshes.get(form) || 0) + 1);
    for (const each of form.querySelectorAll("[data-of-kept]")) each.textContent = each.dataset.ofKept;
    clearTimeout(timer);
    timer = setTimeout(() => refresh(form), 200);
  }
  if (form && form.hasAttribute("data-search")) {
    clearTimeout(timer);
    timer = setTimeout(() => send(form, null), 200);
  }
  if (field.dataset.all !== undefined)
    for (const each of document.querySelectorAll(`input[type=checkbox][name="${field.dataset.all}"]`)) { each.checked = field.checked; touched.add(each); }
});

// What buying costs, before it is bought: of the columns that are ticked, or of all that are shown.
document.addEventListener("change", () => weigh());
document.addEventListener("input", (event) => { if (event.target.id === "price") weigh(); });
function weigh() {
  const said = document.getElementById("to-buy");
  const price = Number(document.getElementById("price")?.value.replace(",", ""));
  if (!said || !(price > 0)) return;
  const every = document.getElementById("whom-shown").checked;
  const facts = [...document.querySelectorAll("[data-buys]")].filter((each) => every || each.checked).reduce((sum, each) => sum + Number(each.dataset.buys), 0);
  const [spent, plan] = [Number(said.dataset.spent), Number(said.dataset.plan)];
  const shown = (number) => String(Number(number.toPrecision(6)));
  const over = document.createElement("b");
  over.className = "over";
  over.textContent = facts && facts * price + spent > plan / 2 ? " That is more than half of it." : "";
  said.replaceChildren(`${facts} open ${facts === 1 ? "fact" : "facts"} of ${every ? "all that are shown" : "those that are ticked"} would cost ε = ${shown(facts * price)}${spent ? `, beside ε = ${shown(spent)} for what is bought already` : ""}; the plan has ε = ${shown(plan)}.`, over);
}

// An element with data-poll asks for itself again, until it comes back without.
function poll(element) {
  setTimeout(async () => {
    if (!document.contains(element)) return;
    try {
      const answer = await fetch(element.dataset.poll, { credentials: "same-origin" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").body.firstElementChild;
      if (!document.contains(element)) return;
      if (!answer.ok || !fresh || !busy.hidden) { poll(element); return; } // a form that is being sent is not cut off
      if (fresh.dataset.reload !== undefined) { load(document.location.href, {}, false); return; }
      element.replaceWith(fresh);
      start(fresh.parentNode);
    } catch { poll(element); }
  }, Number(element.dataset.every || 1000));
}

function start(within) {
  for (const each of within.querySelectorAll("form[data-live]")) if (each.querySelector("[data-at-once]")) refresh(each);
  for (const each of within.querySelectorAll("[data-poll]")) if (!each.polled) { each.polled = true; poll(each); }
}

document.addEventListener("keydown", (event) => {
  const searched = event.key === "Escape" && event.target.closest("[data-search]");
  if (searched && document.querySelector("[data-found]")) { // on to what was found, which stays
    event.preventDefault();
    document.querySelector("[data-found]").focus();
  }
  if (event.key === "/" && !event.target.closest("input, select, textarea")) {
    const search = document.querySelector("[data-search] input[type=search]");
    if (search) { event.preventDefault(); search.focus(); }
  }
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !event.target.closest("input, textarea")) {
    const undo = document.getElementById("undo");
    if (undo) { event.preventDefault(); undo.click(); }
  }
});

document.addEventListener("dragover", (event) => { if (event.target.closest("[data-drop]")) event.preventDefault(); });
document.addEventListener("drop", (event) => {
  const place = event.target.closest("[data-drop]");
  if (!place || !event.dataTransfer.files.length) return;
  event.preventDefault();
  place.querySelector("input[type=file]").files = event.dataTransfer.files;
  place.closest("form").requestSubmit();
});

document.body.prepend(busy);
start(document);
