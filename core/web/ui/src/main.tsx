import { render, type JSX } from "preact";
import { useState } from "preact/hooks";
import { setToken, token } from "./api";
import { Failure, Link, useTitle } from "./parts";
import { Clusters } from "./pages/clusters";
import { Compare, ComparisonPage } from "./pages/compare";
import { EvictionPage } from "./pages/eviction";
import { Evictions } from "./pages/evictions";
import { JobPage, Jobs } from "./pages/jobs";
import { Namespaces } from "./pages/namespaces";
import { NodePage, Nodes } from "./pages/nodes";
import { Overview } from "./pages/overview";
import { Policies, PolicyPage } from "./pages/policies";
import { Queue } from "./pages/queue";
import { TrialPage, Trials } from "./pages/trials";
import { Servers } from "./pages/servers";
import { href, useLocation, type Location } from "./router";
import { store, useStore } from "./store";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const pages: [string, string, () => JSX.Element][] = [
  ["", "Overview", () => <Overview />],
  ["nodes", "Nodes", () => <Nodes />],
  ["queue", "Queue", () => <Queue />],
  ["evictions", "Evictions", () => <Evictions />],
  ["jobs", "Jobs", () => <Jobs />],
  ["clusters", "Clusters", () => <Clusters />],
  ["namespaces", "Namespaces", () => <Namespaces />],
  ["policies", "Policies", () => <Policies />],
  ["trials", "Trials", () => <Trials />],
  ["compare", "Compare", () => <Compare />],
  ["servers", "Servers", () => <Servers />],
];

function content({ page, id }: Location): JSX.Element {
  if (page === "nodes" && id[0]) return <NodePage key={id[0]} id={id[0]} />;
  if (page === "evictions" && id[0]) return <EvictionPage key={id[0]} id={id[0]} />;
  if (page === "jobs" && id[0] && id[1]) return <JobPage key={id.join("\n")} namespace={id[0]} id={id[1]} />;
  if (page === "policies" && id[0]) return <PolicyPage key={id[0]} name={id[0]} />;
  if (page === "trials" && id[0]) return <TrialPage key={id[0]} name={id[0]} />;
  if (page === "compare" && id[0]) return <ComparisonPage key={id[0]} id={id[0]} />;
  const found = pages.find(([name]) => name === page);
  return found && id.length === 0 ? found[2]() : <Unknown />;
}

function Unknown(): JSX.Element {
  useTitle("Unknown page");
  return (
    <>
      <h1>Unknown page</h1>
      <p>The address names no page of the console.</p>
    </>
  );
}

function App(): JSX.Element {
  const s = useStore();
  const at = useLocation();
  return (
    <>
      <a class="skip" href="#content">Skip to content</a>
      <header>
        <strong class="brand">cede</strong>
        <nav aria-label="Pages">
          <ul>
            {pages.map(([name, label]) => (
              <li key={name}>
                <Link to={name ? href(name) : "/ui/"} aria-current={at.page === name ? "page" : undefined}>{label}</Link>
              </li>
            ))}
          </ul>
        </nav>
        <p class={"status " + (s.connected ? "live" : "off")} role="status">
          {s.connected ? "live" : s.denied ? "signed out" : s.reason}
        </p>
        {token() !== "" && (
          <button type="button" onClick={() => (setToken(""), void store.start())}>
            Sign out{s.identity ? ` ${s.identity.Name}` : ""}
          </button>
        )}
      </header>
      <main id="content" tabIndex={-1}>{s.denied ? <SignIn /> : content(at)}</main>
    </>
  );
}

function SignIn(): JSX.Element {
  useTitle("Sign in");
  const { denied } = useStore();
  const [secret, set] = useState("");
  const submit = (e: Event) => {
    e.preventDefault();
    setToken(secret.trim());
    void store.start();
  };
  return (
    <form class="signin" onSubmit={submit}>
      <h1>Sign in</h1>
      <p>This cluster requires a token with the role read for all namespaces. It is kept until this tab is closed.</p>
      {token() !== "" && denied && <Failure error={denied.needsToken ? new Error(denied.message) : denied} />}
      <label>
        Secret of the token
        <input type="password" autocomplete="off" required value={secret} onInput={(e) => set(e.currentTarget.value)} />
      </label>
      <button type="submit" class="primary">Sign in</button>
    </form>
  );
}

void store.start();
render(<App />, document.getElementById("app")!);
