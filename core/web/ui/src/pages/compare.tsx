import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, path, send, type Comparison, type Comparisons, type PolicyStatus, type PolicyStub } from "../api";
import { count, duration, number, percent, time } from "../format";
import { Action, Failure, Figure, Link, Show, useTitle, write } from "../parts";
import { href, navigate } from "../router";
import { useLoaded, useStore, type Loaded } from "../store";
import { save, Table } from "../table";

/** Submits comparisons of policies, which the server plays, and lists them. */
export function Compare(): JSX.Element {
  useTitle("Compare");
  const s = useStore();
  if (!s.may("policy", "operate")) {
    return (
      <>
        <h1>Compare</h1>
        <p class="empty">Comparisons cost the server processor time. They require a token with the role policy or operate.</p>
      </>
    );
  }
  return <List />;
}

function List(): JSX.Element {
  const all = useLoaded((signal) => get<Comparisons>("/v1/comparisons", {}, signal), []);
  const policies = useLoaded(choices, ["Policy", "Operator"]);
  return (
    <>
      <h1>Compare</h1>
      <p>This server plays a scenario under several policies, in a process of its own with the lowest priority, and reports how they differ.</p>
      <Show of={all}>
        {(c) => (
          <>
            <Show of={policies}>{(list) => <Form all={c} policies={list} />}</Show>
            <Table
              name="comparisons" caption="Comparisons of this server" empty="No comparison was submitted." rows={c.Comparisons} keyOf={(r) => r.ID}
              columns={[
                { name: "Scenario", value: (r) => r.Name, cell: (r) => <Link to={href("compare", r.ID)}>{r.Name}</Link> },
                { name: "Policies", value: (r) => r.Policies.map(shortName).join(", ") },
                { name: "Seeds", value: (r) => r.Seeds, numeric: true },
                { name: "Status", value: (r) => r.Status },
                { name: "Submitted", value: (r) => r.Created, cell: (r) => time(r.Created) },
                { name: "By", value: (r) => r.Actor ?? "" },
              ]}
            />
          </>
        )}
      </Show>
    </>
  );
}

/** Shortens the version of NAME@VERSION. */
const shortName = (name: string) => name.replace(/@(?:sha256:)?([0-9a-f]{12})[0-9a-f]+$/, "@$1");

interface Choice {
  name: string;
  origin: string;
}

/** The policies that the server can play: built-in ones, and versions with a module. */
async function choices(signal: AbortSignal): Promise<Choice[]> {
  const stubs = await get<PolicyStub[]>("/v1/policies", {}, signal);
  const loaded = await Promise.all(stubs.filter((p) => p.Versions > 0).map((p) => get<PolicyStatus>(path("policy", p.Name), {}, signal)));
  return [
    ...stubs.filter((p) => p.Builtin).map((p) => ({ name: p.Name, origin: "built in" })),
    ...loaded.flatMap((p) =>
      (p.Loaded ?? [])
        .filter((v) => v.Kind !== "process")
        .map((v) => ({ name: `${p.Name}@${short12(v.ID)}`, origin: v.ID === p.Active ? "active" : "loaded" })),
    ),
  ];
}

/** The version that is active, or the built-in rules, and another policy. */
function preselected(policies: Choice[]): string[] {
  const first = policies.filter((p) => p.origin === "active" || p.name === "default").reverse();
  return [...new Set([...first, ...policies])].slice(0, 2).map((p) => p.name);
}

const short12 = (id: string) => id.replace(/^sha256:/, "").slice(0, 12);

function Form({ all, policies }: { all: Comparisons; policies: Choice[] }): JSX.Element {
  const [preset, setPreset] = useState("");
  const [file, setFile] = useState<File>();
  const [description, setDescription] = useState(false);
  const [chosen, setChosen] = useState<string[]>(() => preselected(policies));
  const [preferred, setBaseline] = useState("");
  const [others, setOthers] = useState("");
  const [seeds, setSeeds] = useState(1);
  const [error, setError] = useState<Error>();
  const [running, setRunning] = useState(false);
  const limits = all.Limits;
  const names = [...chosen, ...others.split(/\s+/).filter((n) => n !== "")];
  const baseline = names.includes(preferred) ? preferred : (names[0] ?? "");
  const submit = async (e: Event) => {
    e.preventDefault();
    setError(undefined);
    setRunning(true);
    try {
      if (preset === "" && !file) throw new Error("choose a file or a preset");
      if (preset === "" && file!.size > limits.Input) throw new Error(`the file has ${number(file!.size)} bytes, and the limit is ${number(limits.Input)}`);
      const body = { ...(preset ? { Preset: preset } : { Name: file!.name, Text: await file!.text(), Description: description }), Policies: [baseline, ...names.filter((n) => n !== baseline)], Seeds: seeds };
      const submitted = (await (await write("POST", "/v1/comparisons", body)).json()) as Comparison;
      navigate(href("compare", submitted.ID));
    } catch (err) {
      setError(err as Error);
      setRunning(false);
    }
  };
  return (
    <section>
      <h2>New comparison</h2>
      <form class="fields" onSubmit={(e) => void submit(e)}>
        <label class="field">
          Workload
          <select value={preset} onChange={(e) => setPreset(e.currentTarget.value)}>
            <option value="">A file</option>
            {all.Presets.map((p) => <option key={p.Name} value={p.Name}>{p.Name}: {p.Description}</option>)}
          </select>
        </label>
        {preset === "" && (
          <>
            <label class="field">
              Scenario, recording or description, in YAML or JSON
              <input type="file" accept=".yaml,.yml,.json" onChange={(e) => setFile(e.currentTarget.files?.[0])} />
            </label>
            <label>
              <input type="checkbox" checked={description} onChange={(e) => setDescription(e.currentTarget.checked)} /> The file describes a scenario that is generated
            </label>
          </>
        )}
        <fieldset>
          <legend>Policies</legend>
          {policies.map((p) => (
            <label key={p.name} class="choice">
              <input
                type="checkbox" checked={chosen.includes(p.name)}
                onChange={(e) => setChosen(e.currentTarget.checked ? [...chosen, p.name] : chosen.filter((n) => n !== p.name))}
              />{" "}
              {p.name} <small>{p.origin}</small>
            </label>
          ))}
        </fieldset>
        <label class="field">
          With settings, such as least-waste?bands=10, separated by spaces
          <input class="wide" value={others} onInput={(e) => setOthers(e.currentTarget.value)} />
        </label>
        <label class="field">
          Baseline, with which the others are compared
          <select value={baseline} onChange={(e) => setBaseline(e.currentTarget.value)}>
            {names.map((n) => <option key={n}>{n}</option>)}
          </select>
        </label>
        <label class="field">
          Seeds
          <input type="number" min={1} max={limits.Seeds} required value={seeds} onInput={(e) => setSeeds(e.currentTarget.valueAsNumber)} />
        </label>
        <p class="note">
          At most {count(limits.Nodes, "node", "nodes")}, {count(limits.Instances, "instance", "instances")}, {number(limits.Memory / 2 ** 20)} MiB of memory
          and {duration(limits.CPU / 1e9)} of processor time.
        </p>
        <Failure error={error} />
        <div class="bar">
          <button type="submit" class="primary" disabled={running || names.length < 2}>Compare {count(names.length, "policy", "policies")}</button>
        </div>
      </form>
    </section>
  );
}

/** Follows a comparison until it ends: the server answers when it has changed. */
function useComparison(id: string): Loaded<Comparison> {
  const [state, set] = useState<{ value: Comparison | undefined; error: Error | undefined }>({ value: undefined, error: undefined });
  const [round, again] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    void (async () => {
      try {
        for (let c: Comparison | undefined; !c?.Ended; ) {
          c = await get<Comparison>(path("comparison", id), c ? { after: String(c.Version), wait: "30s" } : {}, abort.signal);
          set({ value: c, error: undefined });
        }
      } catch (error) {
        if (!abort.signal.aborted) set((old) => ({ value: old.value, error: error as Error }));
      }
    })();
    return () => abort.abort();
  }, [id, round]);
  return { ...state, reload: () => again((n) => n + 1) };
}

export function ComparisonPage({ id }: { id: string }): JSX.Element {
  const comparison = useComparison(id);
  useTitle("Comparison of " + (comparison.value?.Name ?? id));
  return (
    <>
      <h1>Comparison{comparison.value ? ` of ${comparison.value.Name}` : ""}</h1>
      <Show of={comparison}>
        {(c) => (
          <>
            <dl class="figures">
              <Figure name="Status">{c.Status}</Figure>
              <Figure name="Policies">{c.Policies.map(shortName).join(", ")}</Figure>
              <Figure name="Seeds">{c.Seeds}</Figure>
              <Figure name="Submitted" note={c.Actor ? `by ${c.Actor}` : ""}>{time(c.Created)}</Figure>
              {c.Ended && c.Started ? <Figure name="Took">{duration((c.Ended - c.Started) / 1e9)}</Figure> : null}
            </dl>
            {!c.Ended && (
              <section>
                <label class="share">
                  <progress max={1} value={c.Share} aria-label="Share that is played" />
                  <span role="status">{c.Status === "waiting" ? "Another comparison is played first." : `${percent(c.Share, 1)} ${c.Progress ?? ""}`}</span>
                </label>
                <Action label="Cancel the comparison" consequence="The comparison ends without a report." done={comparison.reload} run={() => send(path("comparison", id), { method: "DELETE" })} />
              </section>
            )}
            {c.Error && (
              <div class="failure" role="alert">
                {c.Error.Message}
                {c.Error.Problems && c.Error.Problems.length > 0 && <ul>{c.Error.Problems.map((p) => <li key={p}>{p}</li>)}</ul>}
                {c.Error.Hint && <span class="hint">{c.Error.Hint}</span>}
              </div>
            )}
            {(c.Warnings ?? []).map((w) => <p key={w}>{w}</p>)}
            {c.Status === "complete" && <Report id={id} name={c.Name} />}
          </>
        )}
      </Show>
      <p><Link to={href("compare")}>All comparisons</Link></p>
    </>
  );
}

/** Shows the page of cede compare --html, with its own styles. */
function Report({ id, name }: { id: string; name: string }): JSX.Element {
  const page = useLoaded(async (signal) => (await send(path("comparison", id, "report"), { query: { format: "html" }, signal })).text(), [], [id]);
  const download = async () => save(`${name}.json`, await (await send(path("comparison", id, "report"))).blob());
  return (
    <Show of={page}>
      {(html) => (
        <>
          <div class="bar">
            <button type="button" onClick={() => save(`${name}.html`, new Blob([html], { type: "text/html" }))}>Download the report</button>
            <button type="button" onClick={() => void download()}>Download the figures as JSON</button>
          </div>
          <Document html={html} />
        </>
      )}
    </Show>
  );
}

/**
 * Shows the content of a page in a shadow tree. The parser runs no code, and the policy of the
 * console refuses inline code and styles; the style sheet is that of the report.
 */
function Document({ html }: { html: string }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    let text = "";
    const content = html.replace(/<style>([^]*?)<\/style>/g, (_, css: string) => ((text += css), "")); // names are escaped: they contain no tags
    const page = new DOMParser().parseFromString(content, "text/html");
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text.replaceAll(":root", ":host").replace(/(^|[\s},])body(?=[\s{,])/g, "$1:host"));
    root.adoptedStyleSheets = [sheet];
    const main = page.querySelector("main") ?? page.body;
    for (const wide of main.querySelectorAll<HTMLElement>(".wide")) {
      wide.tabIndex = 0; // it scrolls
      wide.setAttribute("role", "region");
      wide.setAttribute("aria-label", wide.closest("section")?.querySelector("h2")?.textContent ?? "Table");
    }
    root.replaceChildren(...document.importNode(main, true).childNodes);
  }, [html]);
  return <div ref={host} class="report" />;
}
