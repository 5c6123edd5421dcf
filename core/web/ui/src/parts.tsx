// Small parts that several pages use.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { APIError, send } from "./api";
import { href, navigate } from "./router";
import type { Loaded } from "./store";

/** A link that changes the page without loading it again. */
export function Link({ to, children, ...rest }: { to: string; children: ComponentChildren; class?: string; "aria-current"?: "page" | undefined }): JSX.Element {
  const follow = (e: MouseEvent) => {
    if (e.ctrlKey || e.metaKey || e.shiftKey || e.button !== 0) return;
    e.preventDefault();
    navigate(to);
  };
  return (
    <a href={to} onClick={follow} {...rest}>
      {children}
    </a>
  );
}

export const JobLink = ({ namespace, id }: { namespace: string; id: string }) => <Link to={href("jobs", namespace, id)}>{id}</Link>;
export const NodeLink = ({ id, name }: { id: string; name?: string }) => <Link to={href("nodes", id)}>{name || id}</Link>;
export const short = (id: string) => (id.length > 12 ? id.slice(0, 8) : id);

/** Shortens the version of a policy, a digest. */
export const shortVersion = (id: string) => short(id.replace(/^sha256:/, ""));

/** Shows an error of the API with its remedy. */
export function Failure({ error }: { error: Error | undefined }): JSX.Element | null {
  if (!error) return null;
  return (
    <p class="failure" role="alert">
      {error.message}
      {error instanceof APIError && error.hint && <span class="hint">{error.hint}</span>}
    </p>
  );
}

/** Shows a loaded value, or that it is loading, or why it cannot be loaded. */
export function Show<T>({ of, children }: { of: Loaded<T>; children: (value: T) => ComponentChildren }): JSX.Element {
  return (
    <>
      <Failure error={of.error} />
      {of.value !== undefined ? children(of.value) : !of.error && <p class="empty">Loading…</p>}
    </>
  );
}

/** A figure with its name. */
export function Figure({ name, children, note }: { name: string; children: ComponentChildren; note?: string }): JSX.Element {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        {children}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

/** A bar that shows a share, and its text. */
export function Share({ part, whole, label }: { part: number; whole: number; label: string }): JSX.Element {
  return (
    <div class="share">
      <meter min={0} max={Math.max(whole, 1)} value={part} aria-label={label} />
      <span>{label}</span>
    </div>
  );
}

/** A button that changes something, after a confirmation that names the consequence. */
export function Action({ label, consequence, run, done }: { label: string; consequence: string; run: () => Promise<unknown>; done: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [error, setError] = useState<Error>();
  const [running, setRunning] = useState(false);
  const confirm = async () => {
    setRunning(true);
    setError(undefined);
    try {
      await run();
      dialog.current?.close();
      done();
    } catch (err) {
      setError(err as Error);
    } finally {
      setRunning(false);
    }
  };
  return (
    <>
      <button type="button" onClick={() => (setError(undefined), dialog.current?.showModal())}>
        {label}
      </button>
      <dialog ref={dialog} aria-label={label}>
        <p>{consequence}</p>
        <Failure error={error} />
        <div class="bar">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="button" class="primary" disabled={running} onClick={() => void confirm()}>
            {label}
          </button>
        </div>
      </dialog>
    </>
  );
}

/** Sends a write. */
export function write(method: string, target: string, body: unknown, query?: Record<string, string>): Promise<Response> {
  return send(target, { method, body, ...(query ? { query } : {}) });
}

/** Sets the title of the page, which screen readers announce. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title + " · cede";
  }, [title]);
}
