// The page works without this script. It makes a tree of the JSON of an answer: highlighted, foldable, and a name copies its path.
const openLevels = 3;
const text = document.getElementById("json");
const told = document.getElementById("path");
const childrenOf = new WeakMap();
if (text) showTree();

function showTree() {
  const tree = make("div", { className: "tree", role: "tree", ariaLabel: "JSON" });
  const root = itemOf({ name: "", value: JSON.parse(text.textContent), path: "", level: 1, end: "" });
  root.tabIndex = 0;
  tree.append(root);
  tree.addEventListener("click", click);
  tree.addEventListener("keydown", move);
  text.after(tree);
  text.hidden = true;
}

function make(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function span(className, shown) {
  return make("span", { className }, shown);
}

/** One value with its name. Its children are made when it is opened first. */
function itemOf({ name, value, path, level, end }) {
  const isParent = value !== null && typeof value === "object";
  const entries = isParent ? Object.entries(value) : [];
  const label = name === "" ? [] : [span("key", /^\d+$/.test(name) ? name : JSON.stringify(name)), ": "];
  const item = make("div", { className: "item", role: "treeitem", tabIndex: -1, ariaLevel: String(level) });
  item.dataset.path = path;
  if (entries.length === 0) {
    const kind = isParent ? "parent" : typeof value;
    item.append(make("div", { className: "entry" }, ...label, span(kind, JSON.stringify(value)), end));
    return item;
  }
  const isList = Array.isArray(value);
  const [opening, closing] = isList ? "[]" : "{}";
  const size = `${entries.length} ${entries.length === 1 ? "entry" : "entries"}`;
  item.append(
    make("div", { className: "entry" }, ...label, opening, span("folded", `${size} ${closing}${end}`)),
    make("div", { className: "group", role: "group" }),
    make("div", { className: "entry close", ariaHidden: "true" }, `${closing}${end}`),
  );
  childrenOf.set(item, () =>
    entries.map(([key, child], at) =>
      itemOf({
        name: key,
        value: child,
        path: isList ? `${path}[${key}]` : pathOf(path, key),
        level: level + 1,
        end: at < entries.length - 1 ? "," : "",
      }),
    ),
  );
  fold(item, level < openLevels || (level === openLevels && !isList));
  return item;
}

function pathOf(path, key) {
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

function fold(item, isOpen) {
  item.ariaExpanded = String(isOpen);
  const group = item.querySelector(":scope > .group");
  if (isOpen && group.childElementCount === 0) group.append(...childrenOf.get(item)());
}

function click({ target }) {
  const item = target.closest(".item");
  if (!item) return;
  focusOn(item);
  if (target.closest(".key")) void copyPath(item);
  else if (item.ariaExpanded !== null && getSelection().isCollapsed) fold(item, item.ariaExpanded === "false");
}

/** The keys of a tree: up and down, right opens, left folds or leads to the parent. Enter copies the path. */
function move(event) {
  // The browser has a use of its own for these, as Alt and an arrow to go back.
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const item = event.target.closest(".item");
  const shown = [...event.currentTarget.querySelectorAll(".item")].filter((one) => one.checkVisibility());
  const at = shown.indexOf(item);
  const isOpen = item.ariaExpanded === "true";
  const steps = {
    ArrowDown: () => focusOn(shown[at + 1]),
    ArrowUp: () => focusOn(shown[at - 1]),
    Home: () => focusOn(shown[0]),
    End: () => focusOn(shown.at(-1)),
    ArrowRight: () => (item.ariaExpanded === "false" ? fold(item, true) : isOpen && focusOn(shown[at + 1])),
    ArrowLeft: () => (isOpen ? fold(item, false) : focusOn(item.parentElement.closest(".item"))),
    Enter: () => void copyPath(item),
  };
  if (!steps[event.key]) return;
  event.preventDefault();
  steps[event.key]();
}

/** One item of a tree is in the tab order. */
function focusOn(item) {
  if (!item) return;
  for (const old of document.querySelectorAll('.item[tabindex="0"]')) old.tabIndex = -1;
  item.tabIndex = 0;
  item.focus();
}

/** Without https there is no clipboard, and the path is shown to be copied by hand. */
async function copyPath({ dataset: { path } }) {
  if (path === "") return;
  await navigator.clipboard?.writeText(path);
  told.textContent = navigator.clipboard ? `Copied ${path}` : path;
}
