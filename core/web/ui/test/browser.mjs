// Plays the stories of the console in Chromium. The environment names the server (CEDE_URL),
// the browser (CEDE_CHROMIUM) and, optionally, a folder for screenshots (CEDE_SHOTS), the
// only stories to play (CEDE_STORY=NAME,NAME), and the number of events of the story about memory
// (CEDE_EVENTS).
//
// A story leaves a picture, which is compared with the one in test/golden: see pictures.mjs.
// With CEDE_PICTURES=rewrite the pictures replace those in test/golden.
//
// A story is one line of the standard output, "ok NAME" or "not ok NAME: reason"; the exit
// code is 1 if one failed.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { Pictures } from "./pictures.mjs";

const url = process.env.CEDE_URL;
const shots = process.env.CEDE_SHOTS;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({ executablePath: process.env.CEDE_CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const pictures = await Pictures.open(browser);
let failed = 0;

/** The window of a story without options. */
const desktop = { viewport: { width: 1280, height: 900 }, colorScheme: "light" };

// All stories share one page: opening another takes longer than most of them. It is replaced
// if the browser does not draw it. What the browser reports is collected per story.
let page = await newPage();
let problems = [];
let unanswered = new Set(); // URLs of requests that wait for their response

async function newPage() {
  const p = await (await browser.newContext()).newPage();
  p.setDefaultTimeout(60_000);
  p.on("console", (m) => m.type() === "error" && problems.push(m.text() + " " + m.location().url));
  p.on("pageerror", (e) => problems.push(String(e)));
  p.on("dialog", (d) => (problems.push("dialog: " + d.message()), d.dismiss()));
  p.on("request", (r) => (unanswered.add(r.url()), new URL(r.url()).origin !== new URL(url).origin && !/^(blob|about):/.test(r.url()) && problems.push("request to " + r.url())));
  p.on("response", (r) => unanswered.delete(r.url()));
  p.on("requestfailed", (r) => unanswered.delete(r.url()));
  return p;
}

/** Opens a page of the console as if it were the first one. */
async function open(path, { viewport, colorScheme }) {
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme });
  // A blank page in between would start another process. The page of the story before may
  // report problems until this one replaces it.
  page.once("framenavigated", () => ((problems = []), (unanswered = new Set())));
  await page.goto(url + path);
  await connected();
}

/** Waits until the page follows the events of the server. */
async function connected() {
  const status = page.getByRole("status");
  await status.getByText("live").waitFor().catch(async () => {
    const text = await status.textContent({ timeout: 1000 }).catch(() => "missing");
    throw new Error(`the status is ${text} instead of live, the page is ${(await responds()) ? "drawn" : "not drawn"}, and waits for: ${[...unanswered].join(" ") || "no response"}`);
  });
}

function check(condition, text) {
  if (!condition) throw new Error(text);
}

/** Waits until the page shows each text. */
async function shows(...texts) {
  for (const text of texts) await page.locator("main").getByText(text).first().waitFor();
}

/** Checks that the page is not wider than its window. */
async function narrow() {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  check(wide <= 0, `the page is ${wide} pixels wider than the window`);
}

async function accessible() {
  // The policy of the page refuses inline scripts; evaluate is not subject to it.
  await page.evaluate(axe);
  const result = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = result.violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  check(serious.length === 0, serious.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" | ")}`).join("; "));
}

/** Waits for a promise; after some milliseconds it is an error. A script in a page has no timeout. */
async function within(milliseconds, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not ended after ${milliseconds / 1000} s`)), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Reports whether the browser still runs and draws the page. */
const responds = () => within(5_000, page.evaluate(() => new Promise((done) => requestAnimationFrame(done)))).then(() => true, () => false);

/** Plays a story. If the browser does not draw the page afterwards, it is played once more, in another page. */
async function story(name, path, play, options, { secure = false, picture = true, again = true } = {}) {
  if (process.env.CEDE_STORY && !process.env.CEDE_STORY.split(",").includes(name)) return;
  const start = performance.now();
  try {
    await within(180_000, open(path, { ...desktop, ...options }));
    await within(180_000, play());
    await within(120_000, checkPage(name, secure, picture));
    console.log("ok", name, `(${((performance.now() - start) / 1000).toFixed(1)} s)`);
  } catch (err) {
    const reason = err instanceof Error ? err.message.replaceAll("\n", " ") : err;
    const replace = !(await responds());
    if (replace) {
      void page.context().close().catch(() => undefined);
      page = await within(60_000, newPage());
    }
    if (replace && again) {
      console.log(`# ${name}: ${reason}; the browser does not draw the page, which is replaced`);
      return story(name, path, play, options, { secure, picture, again: false });
    }
    failed++;
    console.log("not ok", name + ":", reason);
  }
}

/** Checks what a story left on the page, and takes its picture. */
async function checkPage(name, secure, picture) {
  // Stories without a picture are about behaviour: they end on pages of other stories.
  if (picture || secure || process.env.CEDE_SOAK) await accessible();
  // A browser reports the responses 401 that the sign-in begins with.
  const unexpected = secure ? problems.filter((p) => !p.includes("401") && !p.includes(process.env.CEDE_SECURE_URL)) : problems;
  check(unexpected.length === 0, unexpected.join("; "));
  if (picture) await pictures.check(name.replaceAll(" ", "-"), page);
  if (shots) await page.screenshot({ path: `${shots}/${name.replaceAll(" ", "-")}.png`, fullPage: true });
}

async function put(path, body, query = "") {
  const response = await fetch(`${url}${path}${query}`, { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  check(response.ok, `${path}: status ${response.status}`);
}

/** The text of a time in Unix nanoseconds, as the console shows it. */
const textOfTime = (ns) => new Date(ns / 1e6).toISOString().replace("T", " ").slice(0, 19) + " UTC";

const job = (id, priority, count) => ({
  Job: {
    ID: id, Type: "service", Priority: priority,
    TaskGroups: [{ Name: "g", Count: count, Tasks: [{ Name: "t", Driver: "sim", Resources: { CPU: 1000, MemoryMB: 256 } }] }],
  },
});

await story("overview", "/ui/", () => shows("Nodes ready", "Evaluations waiting", "1 eviction in the last 60 minutes", "Waiting, by priority"));
await story("overview dark", "/ui/", () => shows("Nodes ready"), { colorScheme: "dark" });
await story("overview narrow", "/ui/", async () => {
  await shows("Nodes ready");
  await narrow();
}, { viewport: { width: 360, height: 720 } });
await story("nodes", "/ui/nodes", async () => {
  await shows("node-1", "node-2");
  await page.getByRole("application").focus();
  await page.keyboard.press("ArrowRight");
  await page.locator("#map-node").getByText("node-2").waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Node node-2" }).waitFor();
});
await story("node", "/ui/nodes/node-1", async () => {
  await shows("eligible", "low", "Who would be evicted next", "From priority");
  await page.getByRole("button", { name: "Make ineligible" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Make ineligible" }).click();
  await page.getByRole("button", { name: "Make eligible" }).waitFor();
  await page.getByRole("button", { name: "Make eligible" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Make eligible" }).click();
  await page.getByRole("button", { name: "Make ineligible" }).waitFor();
});
await story("queue", "/ui/queue", async () => {
  const forecast = page.getByRole("row", { name: "huge" }).getByRole("button", { name: "Forecast the start of huge" });
  await shows("Waiting for capacity", "huge");
  await forecast.click();
  await shows("position 2 of 2; no forecast: it does not start within 24h0m0s");
  // No instance here has a duration, so that a forecast with an interval comes from the test.
  const Time = Date.UTC(2026, 4, 1) * 1e6;
  await page.route("**/v1/job/huge/forecast?*", (route) => route.fulfill({ json: {
    Namespace: "default", JobID: "huge", Index: 1, Time, Position: 1, QueueLength: 2, Waiting: 3, Draws: 30, Horizon: 86_400e9,
    First: { Expected: Time + 600e9, Low: Time + 300e9, High: Time + 3600e9, Draws: 30 }, All: { Expected: Time + 7200e9, Low: Time + 900e9, Draws: 20 },
  } }));
  await forecast.click();
  await shows("position 1 of 2; in 10 min (5 min to 1 h); the last instance in 2 h (15 min to more than 1 d)");
});
await story("evictions", "/ui/evictions", () => shows("low", "high", "Lost work"));
await story("eviction", "/ui/evictions", async () => {
  await page.getByRole("link", { name: "why" }).first().click();
  await page.getByRole("heading", { name: /^Eviction of / }).waitFor();
  await shows("Candidates", "Options, the chosen one first", "evicted: a victim.", "Lower tiers rank first");
  for (const name of ["Candidates", "Options, the chosen one first"]) await page.getByRole("region", { name }).getByRole("link", { name: /^node-/ }).first().waitFor();
  await page.getByRole("button", { name: "Make the decision again, with changes" }).click();
  await shows("would have stayed with priority +", "The decision was made");
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download the certificate" }).click()]);
  check(file.suggestedFilename().endsWith(".cert"), `the certificate is called ${file.suggestedFilename()}`);
  const content = await readFile(await file.path());
  check(content.subarray(0, 25).toString() === "cede decision certificate", "the download is not a certificate");
});
await story("jobs", "/ui/jobs", async () => {
  await shows("low", "high", "huge");
  await page.getByRole("searchbox").fill("hug");
  await page.getByText("1 of").waitFor();
  check(new URL(page.url()).searchParams.get("jobs.filter") === "hug", "the filter is not in the address");
});
await story("job", "/ui/jobs/default/huge", async () => {
  await shows("Job huge", "Evaluations");
  // Preemption of service jobs is on here, so the observed decision comes from the test.
  await page.route("**/v1/evaluation/*/decisions?*", (route) => route.fulfill({ json: [{
    Index: 7, Time: 1, EvalID: "e", Namespace: "default", JobID: "huge", Priority: 10, PolicyVersion: "sha256:" + "4".repeat(64), Observed: true, Reason: "",
    Victims: [{ AllocID: "00000000-0000-4000-8000-000000000001", JobID: "low", Namespace: "default", Group: "g", NodeID: "node-2", Priority: 5, LostWork: 90e9, Reason: "" }],
  }] }));
  await page.route("**/v1/allocation/*/decisions", (route) => route.fulfill({ json: [{
    Index: 7, Time: 1, EvalID: "e", Namespace: "default", JobID: "huge", Priority: 10, PolicyVersion: "sha256:" + "4".repeat(64), Observed: true, Reason: "nothing was evicted", NodeID: "node-2",
    Victims: [{ AllocID: "00000000-0000-4000-8000-000000000001", JobID: "low", Namespace: "default", Group: "g", NodeID: "node-2", Priority: 5, LostWork: 90e9, Reason: "" }],
    Why: { Text: [], Candidates: [{ AllocID: "a", Name: "low.g[0]", NodeID: "node-2", Priority: 5, Verdict: "would be evicted" }], Ranked: [] },
  }] }));
  await page.reload();
  const observed = page.getByRole("region", { name: "Would be evicted: preemption is only observed" });
  await observed.getByText("1 min 30 s").waitFor();
  await observed.getByRole("link", { name: /^why/ }).click();
  await shows("The decision was only observed.", "would be evicted: a victim, if preemption were not only observed.");
  check((await page.getByRole("button", { name: /certificate|again/ }).count()) === 0, "an observed decision is offered to be certified");
  await page.goBack();
  await observed.getByText("1 min 30 s").waitFor();
});
await story("clusters", "/ui/clusters", () => shows("No binding is registered.", "No member cluster is registered."));
await story("namespaces", "/ui/namespaces", () => shows("default", "Share of cpu"));
await story("policies", "/ui/policies", () => shows("least-waste", "built in"));
await story("policy", "/ui/policies/default", () => shows("Policy default", "Versions"));
await story("trials", "/ui/trials", async () => {
  await shows("No policy had a trial with blocks.");
  await page.getByLabel("For at most, in hours").fill("0.5");
  await page.getByLabel("Length of a block, in minutes").fill("3");
  await shows("This time contains 5 pairs of blocks. No verdict is possible with fewer than 8.");
  await page.getByRole("button", { name: "Start the trial" }).press("Enter");
  await shows("The trial has started", "No verdict is possible: the conditions require at least 9 pairs of blocks");
  await shows("A trial requires a policy with an active version, another loaded version, and no trial in progress.", "The trial has started");
  await page.getByRole("link", { name: "thrifty", exact: true }).click();
  await page.getByRole("heading", { name: "Trial of thrifty" }).waitFor();
  await shows("none yet: 0 of at least 9 pairs of blocks", "The candidate is promoted as soon as", "better('wastedWork.cpu', candidate, active)");
  // The other pages lead to the trial, and do not offer what it refuses.
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Overview" }).click();
  await page.getByRole("link", { name: "trial of thrifty" }).waitFor();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Policies" }).click();
  await page.getByRole("link", { name: "thrifty", exact: true }).click();
  await shows("candidate of the trial", "active before the trial", "decides in this block");
  for (const name of ["Roll back", "Shadow"]) check((await page.getByRole("button", { name, exact: true }).count()) === 0, `${name} is offered during a trial`);
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Trials" }).click();
  await shows("A trial requires a policy with an active version, another loaded version, and no trial in progress.");
  await page.getByRole("link", { name: "thrifty", exact: true }).click();
  await page.getByRole("button", { name: "Stop the trial" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop the trial" }).click();
  await shows("rolled back: the candidate was not promoted");
});

// A trial of 72 pairs, whose course comes from the test: its blocks would take three days.
const course = (metric) => {
  const start = Date.UTC(2026, 4, 1) * 1e6;
  const block = 1800e9;
  const points = Array.from({ length: 36 }, (_, i) => {
    const n = 2 * i + 2;
    const mean = -0.8 - 3 / n;
    return { Time: start + 2 * n * block, Pairs: n, Difference: mean, ...(n < 9 ? {} : { Low: mean - 9 / Math.sqrt(n), High: mean + 5 / Math.sqrt(n) - 0.1 }) };
  });
  const measure = (Name, Difference, Low, High) => ({ Name, Baseline: 12, Candidate: 12 + Difference, Difference, Low, High });
  return {
    Policy: "thrifty", Metric: metric, Points: points,
    Blocks: Array.from({ length: 145 }, (_, i) => ({ Start: start + i * block, Candidate: (i * 7) % 4 < 2, Value: 12 - ((i * 5) % 3) })),
    Trial: {
      Baseline: "sha256:" + "1".repeat(64), Candidate: "sha256:" + "2".repeat(64), Start: start, Until: start + 200 * block, Block: block, Washout: 300e9, Blocks: 145,
      BlockEnd: start + 146 * block, StopIf: "worse(victims, candidate, active)", PromoteIf: "better('wastedWork.cpu', candidate, active)", Actor: "alice", LeastPairs: 8, MostPairs: 100,
      Measures: [measure("victims", -0.84, -1.9, -0.31), measure("wastedWork.cpu", 410, -100, 900), measure("placed", 3, 1, 5), measure("queueDelay.mean", 2, 0.5, 3.5)],
    },
  };
};
await story("trial", "/ui/servers", async () => {
  await page.route("**/v1/policy/thrifty/trial?*", (route) => route.fulfill({ json: course(new URL(route.request().url()).searchParams.get("metric")) }));
  await page.goto(url + "/ui/trials/thrifty");
  await shows("none yet: no condition holds", "victims, candidate minus active: -0.84 after 72 pairs of blocks", "An interval without 0 is a verdict.");
  const readings = { victims: "the candidate is better", "wastedWork.cpu": "no difference is shown", placed: "the candidate is better", "queueDelay.mean": "the candidate is worse" };
  for (const [metric, reading] of Object.entries(readings)) await page.getByRole("row", { name: metric }).getByText(reading).waitFor();
  await page.getByLabel("Metric of the confidence sequence").selectOption("queueDelay.mean");
  await shows("Complete blocks: queueDelay.mean");
  check((await page.locator(".chart canvas").count()) === 1, "there is no chart");
  await page.evaluate(() => (document.querySelector(".chart").dataset.fixed = "")); // its picture is compared as well
});
await story("trial narrow and dark", "/ui/trials/thrifty", async () => {
  await shows("rolled back");
  await narrow();
}, { viewport: { width: 360, height: 720 }, colorScheme: "dark" });
// A scenario in which the policies choose different victims.
const scenario = (name, extra = "") => `version: 1
name: ${JSON.stringify(name)}
nodes: [{id: n, count: 2, capacity: {cpu: 2000, memory: 1024}}]
jobs:
  - {id: old, priority: 20, groups: [{name: g, count: 2, resources: {cpu: 1000, memory: 100}, duration: 1h}]}
  - {id: young, priority: 20, groups: [{name: g, count: 2, resources: {cpu: 1000, memory: 100}, duration: 1h}]}
  - {id: urgent, priority: 80, groups: [{name: g, resources: {cpu: 1000, memory: 100}, duration: 10m}]}
events: [{at: 0s, submit: old}, {at: 10m, submit: young}, {at: 20m, submit: urgent}]
until: 2h
${extra}`;

async function submitComparison(file, text, policies, baseline) {
  await page.getByLabel("Scenario, recording or description").setInputFiles({ name: file, mimeType: "application/yaml", buffer: Buffer.from(text) });
  for (const box of await page.getByRole("group", { name: /^Policies/ }).getByRole("checkbox").all()) if (await box.isChecked()) await box.uncheck();
  for (const name of policies) await page.getByRole("checkbox", { name }).check();
  if (baseline) await page.getByLabel("Baseline").selectOption(baseline);
  await page.getByRole("button", { name: "Compare 2 policies" }).press("Enter");
}

/** Waits for the page of a comparison and its report. The list before it shows the states of others. */
async function completes(file) {
  await page.getByRole("heading", { name: "Comparison of " + file }).waitFor();
  await shows("complete", "Download the report", "How to repeat it");
}
await story("compare", "/ui/compare", async () => {
  await shows("No comparison was submitted.", "At most 20,000 nodes");
  check((await page.getByLabel("Baseline").inputValue()).startsWith("thrifty@"), "the active version is not preselected");
});
await story("comparison", "/ui/compare", async () => {
  await submitComparison("contest.yaml", scenario("contest"), [/^least-waste built in/, /^thrifty@\w+ loaded/]);
  await completes("contest.yaml");
  await shows("Victims");
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download the figures as JSON" }).click()]);
  const document = JSON.parse(await readFile(await file.path(), "utf8"));
  const played = [...new Set(document.runs.map((r) => r.policy))];
  check(played.length === 2 && played.includes("least-waste"), "the document has other policies: " + played);
  await page.getByRole("link", { name: "All comparisons" }).click();
  await page.getByRole("link", { name: "contest.yaml" }).click();
  await shows("How to repeat it");
});
await story("comparison narrow and dark", "/ui/compare", async () => {
  const code = `<img src=x onerror="alert(1)">`;
  await submitComparison(code + ".yaml", scenario("contest"), [/^default built in/, /^nomad built in/]);
  await completes(code + ".yaml");
  await narrow();
}, { viewport: { width: 360, height: 720 }, colorScheme: "dark" });
await story("comparison refused", "/ui/compare", async () => {
  const bad = scenario("bad", "policies: [{name: x, use: /bin/true}]");
  const [request] = await Promise.all([page.waitForRequest((r) => r.method() === "POST" && r.url() === url + "/v1/comparisons"), submitComparison("bad.yaml", bad, [/^default built in/, /^nomad built in/], "nomad")]);
  check(request.postDataJSON().Policies.join() === "nomad,default", "the baseline is not the first policy of the request");
  await page.getByRole("alert").getByText('"/bin/true" is not a built-in policy').first().waitFor();
});
await story("comparison cancelled", "/ui/compare", async () => {
  await page.getByLabel("Workload").selectOption("contended");
  await page.getByLabel("Seeds").fill("20");
  await page.getByRole("button", { name: "Compare 2 policies" }).click();
  await page.getByRole("button", { name: "Cancel the comparison" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the comparison" }).click();
  await shows("cancelled");
  // A module that was loaded on the server plays like a built-in policy. It is loaded here, after the pictures of pages that list policies.
  const form = new FormData();
  form.append("request", new Blob([JSON.stringify({ Name: "guest" })], { type: "application/json" }));
  form.append("module", new Blob([await readFile(new URL("../../../../sdk/abi/testdata/guests/default-c.wasm", import.meta.url))]));
  const response = await fetch(url + "/v1/policies", { method: "POST", body: form });
  check(response.ok, `load of the module: status ${response.status}`);
  await page.goto(url + "/ui/compare");
  await submitComparison("module.yaml", scenario("module"), [/^default built in/, /^guest@\w+ loaded/]);
  await completes("module.yaml");
  const [report] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download the figures as JSON" }).click()]);
  const figures = JSON.parse(await readFile(await report.path(), "utf8")).runs.map((r) => r.metrics.victims);
  check(figures.length === 2 && figures[0] > 0 && figures[0] === figures[1], "the module, which is the policy default in C, decides differently: " + figures);
}, {}, { picture: false });
await story("servers", "/ui/servers", () => shows("leader", "May fail"));
await story("unknown page", "/ui/nowhere", () => shows("Unknown page"));
await story("escapes in addresses", "/ui/jobs/default/%FF", async () => {
  await page.getByRole("heading", { name: "Job %FF" }).waitFor();
  problems = []; // the browser reports the response 404
}, {}, { picture: false });
await story("wide content in a narrow window", "/ui/queue", async () => {
  await page.getByRole("button", { name: "Forecast the start of huge" }).waitFor();
  await narrow();
  await page.goto(url + "/ui/evictions");
  await page.getByRole("link", { name: /^why/ }).first().waitFor();
  await narrow();
  await page.goto(url + "/ui/compare");
  await page.getByLabel("Workload").waitFor();
  await narrow();
}, { viewport: { width: 360, height: 720 } }, { picture: false });
await story("evictions of a job", "/ui/jobs", async () => {
  await page.getByRole("link", { name: /^\d+ evictions of low$/ }).click();
  await page.getByRole("heading", { name: "Evictions", level: 1 }).waitFor();
  await page.getByRole("row").nth(1).getByRole("link", { name: "low", exact: true }).click();
  await page.getByRole("link", { name: /^\d+ evictions of low$/ }).waitFor();
}, {}, { picture: false });

// A newcomer answers seven questions, from the first page on, with links alone.
await story("newcomer's questions", "/ui/", async () => {
  await page.route("**/v1/policy/thrifty/trial?*", (route) => route.fulfill({ json: course(new URL(route.request().url()).searchParams.get("metric")) }));
  const follow = (name, within = page.getByRole("main")) => within.getByRole("link", { name, exact: true }).first().click();
  const menu = page.getByRole("navigation", { name: "Pages" });
  await follow("Evictions", menu);
  const last = page.getByRole("row").nth(1); // the first row holds the names of columns
  await last.getByText("low").first().waitFor(); // who was evicted last
  await last.getByText("high").waitFor(); // for whom
  check(/\d+ (s|min|h)/.test(await last.innerText()), "the row of the eviction has no lost work"); // its cost
  await last.getByRole("link", { name: /^why/ }).click();
  await shows("Why", "Candidates"); // why
  await page.getByRole("button", { name: "Make the decision again, with changes" }).click();
  await shows("would have stayed with priority +"); // what would have saved it
  await page.getByRole("main").getByRole("link", { name: /^node-/ }).first().click();
  await shows("Who would be evicted next"); // who is next
  await page.getByRole("table").filter({ hasText: "From priority" }).getByText(/low|high/).first().waitFor();
  await follow("Trials", menu);
  await follow("thrifty");
  await shows("the candidate is better"); // whether the candidate is better
}, {}, { picture: false });

// The memory of a page does not grow with the number of events that it has received. The
// events come from the test, as fast as the page reads them.
await story("memory", "/ui/servers", async () => {
  const total = Number(process.env.CEDE_EVENTS ?? 8_000);
  const batch = 2_000;
  const map = {
    Index: 1, Resources: ["cpu"],
    Nodes: { ID: ["n0"], Name: ["n0"], Datacenter: ["dc1"], State: ["ready"], Capacity: [[16_000]] },
    Groups: [{ Namespace: "default", JobID: "j", JobType: "service", Version: 0, Group: "g", Priority: 50, Use: [10] }],
    Allocs: { ID: [], Node: [], Group: [], StartTime: [] },
  };
  const sent = { Allocation: 0, Preemption: 0 };
  const time = Date.UTC(2026, 0, 1) * 1e6;
  const id = (n) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
  // Every allocation is placed by one event and stopped by a later one.
  const allocation = (n) => ({
    Topic: "Allocation", Type: "AllocationUpdated", Key: id(n >> 1), Namespace: "default", Index: n + 2, Time: time + n * 1e6,
    Payload: { AllocID: id(n >> 1), JobID: "j", Group: "g", NodeID: "n0", Desired: n % 2 ? "evict" : "run", Client: "running" },
  });
  const preemption = (n) => ({
    Topic: "Preemption", Type: "AllocationPreempted", Key: id(n), Namespace: "default", Index: n + 2, Time: time + n * 1e6,
    Payload: {
      Victim: { AllocID: id(n), JobID: `victim-${n % 97}`, Namespace: "default", Group: "g", NodeID: "n0", Priority: 20, LostWork: 60e9, Reason: "priority" },
      By: id(n), ByJobID: "preemptor", ByNamespace: "default", ByPriority: 80, NodeID: "n0", PolicyVersion: "sha256:" + "3".repeat(64),
    },
  });
  let target = total / 2;
  await page.route("**/v1/map", (route) => route.fulfill({ json: map }));
  await page.route("**/v1/event/stream?*", (route) => {
    const topic = new URL(route.request().url()).searchParams.getAll("topic").includes("Preemption") ? "Preemption" : "Allocation";
    let body = ": no event\n\n";
    const end = Math.min(sent[topic] + batch, target);
    for (; sent[topic] < end; sent[topic]++) {
      const event = (topic === "Preemption" ? preemption : allocation)(sent[topic]);
      body += `id: ${event.Index}\nevent: events\ndata: ${JSON.stringify({ Index: event.Index, Events: [event] })}\n\n`;
    }
    return route.fulfill({ contentType: "text/event-stream", body });
  });
  await page.goto(url + "/ui/evictions");
  const cdp = await page.context().newCDPSession(page);
  const used = async () => {
    await page.locator("main").getByText(textOfTime(time + (target - 1) * 1e6)).first().waitFor();
    for (let i = 0; i < 3; i++) await cdp.send("HeapProfiler.collectGarbage");
    return (await cdp.send("Runtime.getHeapUsage")).usedSize;
  };
  const first = await used();
  target = total;
  const second = await used();
  console.log(`# heap after ${total / 2} and ${total} events of each stream: ${(first / 2 ** 20).toFixed(2)} and ${(second / 2 ** 20).toFixed(2)} MiB`);
  check(second < first * 1.1 + 2 ** 20, `the heap grew from ${first} to ${second} bytes`);
}, {}, { picture: false });

// The comparison of pictures detects a column that is missing, and ignores how glyphs are
// smoothed.
await story("pictures", "/ui/jobs", async () => {
  await shows("huge");
  const before = await pictures.take(page);
  await page.evaluate(() => (document.documentElement.style.setProperty("-webkit-font-smoothing", "none"), (document.body.style.transform = "translate(0.4px, 0.3px)")));
  const smoothed = await pictures.difference(before, await pictures.take(page));
  check(smoothed.changed <= smoothed.blocks * 0.003, `another anti-aliasing changes ${smoothed.changed} of ${smoothed.blocks} blocks`);
  await page.evaluate(() => {
    document.body.style.transform = "";
    for (const row of document.querySelectorAll("tr")) row.children[4]?.remove();
  });
  const missing = await pictures.difference(before, await pictures.take(page));
  check(missing.changed > missing.blocks * 0.012, `a missing column changes ${missing.changed} of ${missing.blocks} blocks`);
}, {}, { picture: false });

// On a busy machine the first answers arrive before the page is painted, after which effects run.
await story("late effects", "/ui/servers", async () => {
  const late = await page.context().newPage();
  try {
    await late.addInitScript(() => {
      const soon = window.setTimeout;
      window.setTimeout = (f, ms = 0, ...args) => soon(f, ms < 100 ? ms + 2000 : ms, ...args);
    });
    await late.goto(url + "/ui/servers");
    await late.getByRole("status").getByText("live").waitFor({ timeout: 20_000 });
  } finally {
    await late.close();
  }
}, {}, { picture: false });

// An eviction reaches the page without a request of the page, soon after its commit.
await story("live", "/ui/evictions", async () => {
  await page.getByRole("link", { name: "high" }).first().waitFor();
  const requests = await page.evaluate(() => performance.getEntriesByType("resource").length);
  // The observer is installed before the job exists: nothing else changes the table.
  await page.evaluate(() => {
    globalThis.shown = new Promise((resolve) => {
      const look = () => document.querySelector("main table")?.textContent.includes("tiny") && requestAnimationFrame(() => resolve(Date.now()));
      new MutationObserver(look).observe(document.querySelector("main"), { childList: true, subtree: true, characterData: true });
    });
  });
  await put("/v1/jobs", job("tiny", 95, 1));
  const at = await page.evaluate(() => globalThis.shown);
  const victim = (await page.getByRole("row", { name: "tiny" }).getByRole("link", { name: /^why/ }).first().getAttribute("href")).split("/").pop();
  const [decision] = await (await fetch(`${url}/v1/allocation/${victim}/decisions`)).json();
  console.log(`# the eviction was shown ${at - Math.floor(decision.Time / 1e6)} ms after its entry in the log`);
  const more = (await page.evaluate(() => performance.getEntriesByType("resource").length)) - requests;
  check(more < 5, `${more} requests for one eviction`);
}, {}, { picture: false });

// Lists follow a busy cluster, in which events never pause.
await story("busy", "/ui/jobs", async () => {
  let busy = true;
  const writes = (async () => {
    for (let i = 1; busy && i < 2000; i++) await put("/v1/jobs", job(`busy-${i % 5}`, 1 + (i % 5), 1 + (i % 3)));
  })();
  try {
    await page.getByRole("link", { name: "busy-1" }).waitFor({ timeout: 20_000 });
  } finally {
    busy = false;
    await writes;
  }
}, {}, { picture: false });

// A cluster with tokens shows nothing without one, and the actions that its roles permit.
await story("sign in", "/ui/nowhere", async () => {
  await page.goto(process.env.CEDE_SECURE_URL + "/ui/nodes/node-1");
  await page.getByLabel("Secret of the token").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Secret of the token").fill(process.env.CEDE_SECURE_TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Drain" }).waitFor();
  await page.getByRole("button", { name: "Sign out bootstrap" }).click();
  // A token that is deleted leads to the form again, although the page was loaded with it.
  const admin = { Authorization: "Bearer " + process.env.CEDE_SECURE_TOKEN, "Content-Type": "application/json" };
  const created = await fetch(process.env.CEDE_SECURE_URL + "/v1/acl/token", { method: "PUT", headers: admin, body: JSON.stringify({ Name: "guest", Roles: ["read"] }) });
  const { AccessorID, SecretID } = await created.json();
  await page.getByLabel("Secret of the token").fill(SecretID);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Node node-1" }).waitFor();
  check((await page.getByRole("button", { name: "Drain" }).count()) === 0, "a reader may drain");
  await fetch(process.env.CEDE_SECURE_URL + "/v1/acl/token/" + AccessorID, { method: "DELETE", headers: admin });
  await page.getByRole("link", { name: "Servers" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.getByRole("alert").getByText("the token is unknown or no longer valid").waitFor();
  await page.getByRole("status").getByText("signed out").waitFor();
}, {}, { secure: true, picture: false });

// A server that was restarted without its data has an older state than the page.
await story("restarted server", "/ui/servers", async () => {
  let maps = 0;
  await page.route("**/v1/map", (route) => (maps++, route.continue()));
  await page.route("**/v1/event/stream?*", (route) => (maps > 1 ? route.continue() : route.fulfill({ contentType: "text/event-stream", body: 'event: ahead\ndata: {"Newest":1}\n\n' })));
  await page.reload();
  for (const end = Date.now() + 60_000; maps < 2; await page.waitForTimeout(100)) check(Date.now() < end, "the page did not read the map again");
  await connected();
}, {}, { picture: false });

// Names are shown as text.
await story("hostile names", "/ui/namespaces", async () => {
  const name = `<img src=x onerror="alert(1)">`;
  await put("/v1/namespace/hostile", { Name: "hostile", Description: name });
  await page.reload();
  await shows(name);
}, {}, { picture: false });

// The map of a large cluster: its columns come from the test, so that no server needs them.
await story("large map", "/ui/servers", async () => {
  const nodes = 10_000;
  const allocs = 100_000;
  const all = (n, of) => Array.from({ length: n }, (_, i) => of(i));
  const { Index } = await (await fetch(url + "/v1/map")).json();
  const map = {
    Index, Resources: ["cpu"],
    Nodes: { ID: all(nodes, (i) => "n" + i), Name: all(nodes, (i) => "n" + i), Datacenter: all(nodes, () => "dc1"), State: all(nodes, () => "ready"), Capacity: all(nodes, () => [16_000]) },
    Groups: all(100, (i) => ({ Namespace: "default", JobID: "j" + i, JobType: "service", Version: 0, Group: "g", Priority: i, Use: [1000] })),
    Allocs: { ID: all(allocs, (i) => `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`), Node: all(allocs, (i) => i % nodes), Group: all(allocs, (i) => i % 100), StartTime: all(allocs, () => 1_700_000_000) },
  };
  await page.route("**/v1/map", (route) => route.fulfill({ json: map }));
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.goto(url + "/ui/nodes");
  await page.getByRole("application", { name: "Map of 10,000 nodes" }).waitFor();
  const drawn = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
    const map = performance.getEntriesByType("resource").find((r) => r.name.endsWith("/v1/map"));
    done({ total: performance.now(), afterMap: performance.now() - map.responseEnd });
  }))));
  const { metrics } = await cdp.send("Performance.getMetrics");
  const busy = metrics.find((m) => m.name === "TaskDuration").value;
  console.log(`# the map of ${nodes} nodes and ${allocs} allocations was drawn ${Math.round(drawn.total)} ms after the request of the page, ` +
    `${Math.round(drawn.afterMap)} ms after its data; the page used ${Math.round(1000 * busy)} ms of processor time`);
}, {}, { picture: false });

await within(30_000, browser.close()).catch((err) => console.log(`# closing the browser: ${err.message}`));
process.exit(failed > 0 ? 1 : 0);
