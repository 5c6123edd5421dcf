// Pages have stable addresses below /ui.
import { useLayoutEffect, useState } from "preact/hooks";

export interface Location {
  page: string; // first segment below /ui; "" is the overview
  id: string[]; // further segments
  query: URLSearchParams;
}

export function current(): Location {
  const [page = "", ...id] = window.location.pathname.replace(/^\/ui\/?/, "").split("/").map(decoded);
  return { page, id: id.filter((s) => s !== ""), query: new URLSearchParams(window.location.search) };
}

/** Decodes a segment. One that is not valid UTF-8 stays as it is, so that the page can name it. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

const changed = new EventTarget();

export function navigate(href: string, replace = false): void {
  if (replace) window.history.replaceState(null, "", href);
  else window.history.pushState(null, "", href);
  changed.dispatchEvent(new Event("change"));
}

/** Returns the location, and renders again when it changes. */
export function useLocation(): Location {
  const [at, set] = useState(current);
  useLayoutEffect(() => {
    const update = () => set(current());
    changed.addEventListener("change", update);
    window.addEventListener("popstate", update);
    return () => {
      changed.removeEventListener("change", update);
      window.removeEventListener("popstate", update);
    };
  }, []);
  return at;
}

/** Sets parameters of the address, so that a view can be shared; "" removes one. */
export function setQuery(values: Record<string, string>): void {
  const query = new URLSearchParams(window.location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  navigate(window.location.pathname + (text ? "?" + text : ""), true);
}

/** The address of a page. */
export function href(page: string, ...id: string[]): string {
  return "/ui/" + [page, ...id].map(encodeURIComponent).join("/");
}
