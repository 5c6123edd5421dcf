package bundle_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

const module = "\x00asm\x01\x00\x00\x00"

const manifest = `version: 1
name: gentle
kind: wasm
module: build/gentle.wasm
digest: ` + "sha256:93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476" + `
abi:
  min: "1.0"
hooks: [scoreVictims]
settings:
  - name: halfLife
    kind: duration
    default: 10m
    min: 1
limits: {fuel: 1000, memory: 16MiB, time: 2s}
`

// folder writes a bundle and returns its directory.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "policy.yaml"), manifest)
	write(t, filepath.Join(dir, "build", "gentle.wasm"), module)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) *bundle.Bundle {
	t.Helper()
	b, err := bundle.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOpen_ReadsDirectory(t *testing.T) {
	t.Parallel()
	b := open(t, folder(t))
	if b.Manifest.Name != "gentle" || string(b.Code) != module || b.Signed() {
		t.Errorf("read %+v", b.Manifest)
	}
	limits, err := b.Manifest.Limits.Parse()
	want := policy.Limits{Fuel: 1000, Memory: 16 << 20, Time: 2 * time.Second}
	if diff := cmp.Diff(want, limits); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestOpen_RejectsModuleWithOtherDigest(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	write(t, filepath.Join(dir, "build", "gentle.wasm"), module+"\x00")
	_, err := bundle.Open(dir)
	if err == nil || !strings.Contains(err.Error(), "does not match its manifest") {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "build", "gentle.wasm")); err != nil {
		t.Fatal(err)
	}
	_, err = bundle.Open(dir)
	if missing, ok := errors.AsType[*bundle.NotBuiltError](err); !ok || missing.Dir != dir || !strings.Contains(err.Error(), "run `cede policy build "+dir+"`") {
		t.Error(err)
	}
	if _, err := bundle.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "cede policy init") {
		t.Error(err)
	}
}

func TestOpen_ReadsSingleModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "My Policy_2.wasm")
	write(t, path, module)
	b := open(t, path)
	if b.Manifest.Name != "my-policy-2" || b.Manifest.Kind != bundle.Wasm || b.Manifest.Digest != bundle.Digest([]byte(module)) {
		t.Errorf("read %+v", b.Manifest)
	}
	program := filepath.Join(dir, "greedy")
	write(t, program, "#!/bin/sh\n")
	if _, err := bundle.Open(program); err == nil || !strings.Contains(err.Error(), "is not a policy") {
		t.Error("file without execute permission was accepted:", err)
	}
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	if b := open(t, program); b.Manifest.Kind != bundle.Process || b.Code != nil || b.Manifest.Digest != bundle.Digest([]byte("#!/bin/sh\n")) {
		t.Errorf("read %+v", b.Manifest)
	}
}

func TestOpen_RejectsLargeModuleWithoutReadingIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "huge.wasm")
	write(t, path, module)
	if err := os.Truncate(path, 200<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Open(path); err == nil || !strings.Contains(err.Error(), "exceeds the maximum of 8 MiB") {
		t.Error(err)
	}
}

func TestParseManifest_ListsEveryProblem(t *testing.T) {
	t.Parallel()
	for text, wants := range map[string][]string{
		"version: 2\nname: Big\nkind: dll\nmodule: ../x\ndigest: abc\nabi: {min: 1.0x}\nhooks: [all]\nlimits: {memory: 3, time: soon}\nbuild: {lang: cobol, source: /etc}\nsettings: [{name: A, kind: bool}]\n": {
			"m.yaml: version: unsupported value 2", `m.yaml: name: invalid value "Big"`, `m.yaml: kind: invalid value "dll"`, `m.yaml: module: invalid value "../x"`,
			`m.yaml: digest: invalid value "abc"`, `m.yaml: abi.min: invalid value "1.0x"`, `m.yaml: hooks: unknown hook "all"`, `m.yaml: limits.memory: invalid value "3"`,
			`m.yaml: limits.time: invalid value "soon"`, `m.yaml: build.lang: unknown language "cobol"`, `m.yaml: build.source: invalid value "/etc"`, `m.yaml: invalid setting name "A"`,
		},
		"version: 1\nnaem: x\nkind: 3\nmodul: y\n": {
			`m.yaml: line 2: unknown field "naem": must be abi, build,`, `m.yaml: line 4: unknown field "modul": must be abi`, "version; did you mean name?\n", "version; did you mean module?\n", `m.yaml: kind: invalid value "3"`,
		},
		"version: one\nlimits: {fuel: -1,\n  time: soon}\nkind: dll\nsettings: [{name: a, min: low}]\nrules: [x]\n": {
			"m.yaml: line 1: expected an integer, found the string one\n", "m.yaml: line 2: expected an integer of 0 or more, found the number -1\n",
			"m.yaml: line 5: expected a number, found the string low\n", "m.yaml: line 6: expected fields, found a list\n", `m.yaml: kind: invalid value "dll"`, `m.yaml: name: invalid value ""`,
		},
		"name: x\nversion: 1\nuse: {order: default, gate: protect}\nlimits: {ful: 1}\n": {
			`m.yaml: line 3: use: unknown hook "gate": must be eligible, order, option or bindings`, `m.yaml: line 4: unknown field "ful": must be fuel, fuelPerRow, memory, time`,
		},
		"name: x\nuse:\n  order:\n  option: [default, {a: b}]\n  gate: protect\n  order: default\n": {
			"m.yaml: line 3: use.order: expected a policy", "m.yaml: line 4: use.option: expected a policy", `m.yaml: line 5: use: unknown hook "gate"`, "m.yaml: line 6: order is given twice, first on line 3",
		},
		"name: X\nkind: dll\nlimits: {fuel: 1, ful: 2, fuel: 3}\nname: y\nrules: {order: victim.age}\nversion: 7\nmodul: a\nabi: [1]\n": {
			"m.yaml: line 4: name is given twice, first on line 1; remove one of the two\n", "m.yaml: line 3: fuel is given twice, first on line 3; remove one of the two\n",
			`m.yaml: line 3: unknown field "ful": must be fuel`, `m.yaml: line 7: unknown field "modul"`, "m.yaml: line 8: expected fields, found a list\n",
			`m.yaml: name: invalid value "X"`, `m.yaml: kind: invalid value "dll"`, "m.yaml: version: unsupported value 7",
		},
		"name: x\nuse: 5\nversion: 7\n":            {"m.yaml: line 2: use: expected hooks, such as order: least-waste", "m.yaml: version: unsupported value 7"},
		"name: X\nrules:\n  # order: victim.age\n": {`m.yaml: name: invalid value "X"`, "m.yaml: rules: write at least one beneath it"},
		"name: x\nuse:\n":                          {"m.yaml: use: name at least one policy"},
		"":                                         {"m.yaml is empty"},
		"\x00":                                     {"m.yaml: "},
		"version: [\n":                             {"m.yaml: line 1: not valid YAML: did not find expected node content; check indentation, quotes and brackets around this line"},
		withABI(`{min: "1.7"}`):                    {fmt.Sprintf("requires 1.7, but this version of cede supports %d.%d", abi.Major, abi.Minor)},
		withABI(`{min: "2.0"}`):                    {"requires 2.0"},
		withABI(`{min: "0.1", max: "0.9"}`):        {"supports versions up to 0.9"},
		"name: x\nrules:\n  order: [victim.use['cpu'], victim.age]\n": {"m.yaml: line 3: not valid YAML: did not find expected ',' or ']'; in brackets, quote texts that contain commas, brackets or quotes"},
		"name: x\nrules:\n  order: \"x\" + victim.job\n":              {`m.yaml: line 3: not valid YAML: did not find expected key; YAML ends a value at its closing quote: write '"x" + victim.job'`},
		"name: x\nrules:\n  order:\n    - 'x' + victim.job\n":         {`m.yaml: line 4: not valid YAML: did not find expected '-' indicator; YAML ends a value at its closing quote: write "'x' + victim.job"`},
		"name: x\nrules:\n  order: 'x' + \"y\"\n":                     {`; YAML ends a value at its closing quote: quote the whole value`},
		"hooks: [a}\nname: x\n":                                       {"m.yaml: line 1: not valid YAML: did not find expected ',' or ']'"},
	} {
		_, err := bundle.ParseManifest("m.yaml", []byte(text))
		if err == nil {
			t.Errorf("%q was accepted", text)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is missing in\n%v", want, err)
			}
		}
	}
}

// A misspelt, mistyped or duplicate field is one problem: its value is missing for the others.
func TestParseManifest_ListsNoConsequences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"naem: x\nrules: {order: victim.age}\n":                                `m.yaml: line 1: unknown field "naem": must be `,
		"name: x\nversion: one\nrules: {order: victim.age}\n":                  "m.yaml: line 2: expected an integer, found the string one",
		"name: x\nrules: [order]\n":                                            "m.yaml: line 2: expected fields, found a list",
		"name: x\nuse: {oder: default}\n":                                      `m.yaml: line 2: use: unknown hook "oder": did you mean order?`,
		"name: x\nrules: {order: victim.age}\nlimits:\n  fuel: much\n":         "m.yaml: line 4: expected an integer of 0 or more, found the string much",
		"name: x\nrules: {order: victim.age}\nlimits:\n  fuelPerRow: 1000.5\n": "m.yaml: line 4: expected an integer of 0 or more, found the number 1000.5",
		"name: x\nrules:\n  order: *a\n":                                       "m.yaml: line 3: unknown anchor 'a' referenced; write a text that starts with * in quotes",
		"name: x\nname: y\nrules: {order: victim.age}\n":                       "m.yaml: line 2: name is given twice, first on line 1; remove one of the two",
		"name: x\nrules: {order: now, order: now}\n":                           "m.yaml: line 2: order is given twice, first on line 2; remove one of the two",
		"- name: x\n": "m.yaml: line 1: expected fields, found a list",
		"rules":       "m.yaml: line 1: expected fields, found the string rules",
		"---\n":       "m.yaml is empty",
		"name: x\nrules: {order: victim.age}\n---\nlimits: {fuel: 1}\n":    "m.yaml: line 3: unexpected second document: a manifest is one document",
		"name: x\nrules: {order: victim.age}\nhooks: {a: b}\nabi: [1.0]\n": "m.yaml: line 3: expected a list, found a set of fields\nm.yaml: line 4: expected fields, found a list",
	} {
		if _, err := bundle.ParseManifest("m.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "\n") != strings.Count(want, "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func withABI(r string) string {
	return strings.Replace(manifest, "abi:\n  min: \"1.0\"\n", "abi: "+r+"\n", 1)
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(manifest))
	f.Add([]byte("version: 1\nabi: {min: \"1.0\", max: \"9999999999999999999.0\"}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := bundle.ParseManifest("m.yaml", text)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bundle.ParseManifest("m.yaml", again); err != nil {
			t.Fatalf("encoded manifest does not parse: %v\n%s", err, again)
		}
	})
}

// A mapping that is merged into itself is a problem like others.
func TestParseManifest_ReportsMergeWithItself(t *testing.T) {
	_, err := bundle.ParseManifest("policy.yaml", []byte("name: p\nrules: {lost: lost_work}\nlimits: &l\n  fuel: 1\n  fule: 2\n  <<: *l\n"))
	if err == nil || !strings.Contains(err.Error(), "'l' value contains itself") || strings.Count(err.Error(), `unknown field "fule"`) != 1 {
		t.Error(err)
	}
}

func TestHookNames_NamesEveryHook(t *testing.T) {
	t.Parallel()
	all := policy.HookDelta | policy.HookScoreVictims | policy.HookSelectVictims | policy.HookScoreOptions | policy.HookPreemptBindings
	want := []string{"priorityDelta", "scoreVictims", "selectVictims", "scoreOptions", "preemptBindings"}
	if d := cmp.Diff(want, bundle.HookNames(all)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want[4:], bundle.HookNames(policy.HookPreemptBindings)); d != "" {
		t.Error(d)
	}
	listed := strings.Replace(manifest, "hooks: [scoreVictims]", "hooks: [preemptBindings]", 1)
	if m, err := bundle.ParseManifest("m.yaml", []byte(listed)); err != nil || m.CheckModule(policy.HookPreemptBindings, nil) == nil ||
		strings.Contains(m.CheckModule(policy.HookPreemptBindings, nil).Error(), "hooks:") {
		t.Error(m, err)
	}
}

func TestCheckModule_ComparesManifestWithModule(t *testing.T) {
	t.Parallel()
	m, err := bundle.ParseManifest("m.yaml", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	list := []sdk.Setting{{Name: "halfLife", Kind: sdk.Duration, Default: "10m", Limits: sdk.AtLeast(1)}}
	if err := m.CheckModule(policy.HookScoreVictims, list); err != nil {
		t.Error(err)
	}
	if err := m.CheckModule(policy.HookScoreVictims|policy.HookDelta, nil); err == nil ||
		!strings.Contains(err.Error(), "hooks: manifest lists scoreVictims, module has priorityDelta, scoreVictims") ||
		!strings.Contains(err.Error(), "settings:") {
		t.Error(err)
	}
	if err := m.Describe(policy.HookDelta, list); err != nil || m.CheckModule(policy.HookDelta, list) != nil {
		t.Error("description contradicts itself", err)
	}
}

func keys(t *testing.T) (ed25519.PrivateKey, string) {
	t.Helper()
	dir := t.TempDir()
	private, public, err := bundle.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "key"), string(private))
	write(t, filepath.Join(dir, "key.pub"), string(public))
	key, err := bundle.ReadPrivateKey(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	return key, filepath.Join(dir, "key.pub")
}

func TestVerify_FailsAfterAnyChange(t *testing.T) {
	t.Parallel()
	key, public := keys(t)
	_, stranger := keys(t)
	dir := folder(t)
	roots, err := bundle.ReadRoots(public)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := roots.Verify(open(t, dir)); err == nil || !strings.Contains(err.Error(), "is not signed") {
		t.Error(err)
	}
	if err := open(t, dir).Sign(key); err != nil {
		t.Fatal(err)
	}
	if id, err := roots.Verify(open(t, dir)); err != nil || !strings.HasPrefix(id, "ed25519:") {
		t.Error(id, err)
	}
	others, err := bundle.ReadRoots(stranger)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := others.Verify(open(t, dir)); err == nil || !strings.Contains(err.Error(), "not one of the 1 trusted keys") {
		t.Error(err)
	}
	if err := open(t, dir).CheckSignature(); err != nil {
		t.Error(err)
	}
	write(t, filepath.Join(dir, "policy.yaml"), strings.Replace(manifest, "fuel: 1000", "fuel: 9000", 1))
	const want = " was made for another content of policy.yaml; sign again with `cede policy sign "
	if _, err := roots.Verify(open(t, dir)); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	if err := open(t, dir).CheckSignature(); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	// A signature without the digest of its manifest is verified as well.
	text, err := os.ReadFile(filepath.Join(dir, "policy.yaml.sig"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "policy.yaml.sig"), regexp.MustCompile(`,\s*"manifest": "[^"]*"`).ReplaceAllString(string(text), ""))
	if err := open(t, dir).CheckSignature(); err != nil {
		t.Error(err)
	}
	if _, err := roots.Verify(open(t, dir)); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	write(t, filepath.Join(dir, "policy.yaml"), manifest)
	if _, err := roots.Verify(open(t, dir)); err != nil {
		t.Error(err)
	}
}

func TestWrite_RemovesInvalidSignature(t *testing.T) {
	t.Parallel()
	key, _ := keys(t)
	dir := folder(t)
	if err := open(t, dir).Sign(key); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "build", "gentle.wasm"), module+"\x00\x01\x00")
	b, err := bundle.Rebuild(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Write(nil); err != nil {
		t.Fatal(err)
	}
	if b := open(t, dir); b.Signed() {
		t.Error("signature still exists")
	}
}

// If the module cannot be put into place, the manifest and its signature remain.
func TestWrite_ChangesNothingIfModuleCannotBePlaced(t *testing.T) {
	t.Parallel()
	key, _ := keys(t)
	dir := folder(t)
	if err := open(t, dir).Sign(key); err != nil {
		t.Fatal(err)
	}
	b := open(t, dir)
	b.Manifest.Description = "another"
	full := errors.New("no space left on device")
	if err := b.Write(func() error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if b := open(t, dir); !b.Signed() || b.Manifest.Description == "another" {
		t.Errorf("signed: %v, manifest: %+v", b.Signed(), b.Manifest)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".policy-*")); left != nil { // the pattern is valid
		t.Error("left files", left)
	}
}

// The manifest is replaced and not truncated, so that a full disk or a crash does not lose
// its text. Its mode stays, and a link to it too.
func TestWrite_ReplacesManifestAtOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	manifest, linked, copied := filepath.Join(dir, "policy.yaml"), filepath.Join(t.TempDir(), "linked.yaml"), filepath.Join(dir, "copied")
	before, err := os.ReadFile(manifest)
	for _, next := range []error{err, os.Chmod(manifest, 0o640), os.Rename(manifest, linked), os.Symlink(linked, manifest), os.Link(linked, copied)} {
		if next != nil {
			t.Fatal(next)
		}
	}
	b := open(t, dir)
	b.Manifest.Description = "another"
	if err := b.Write(nil); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(copied); err != nil || string(got) != string(before) {
		t.Errorf("the file was overwritten: %q, %v", got, err)
	}
	info, err := os.Stat(linked)
	if err != nil || info.Mode().Perm() != 0o640 || open(t, dir).Manifest.Description != "another" {
		t.Errorf("manifest: %v, %v", info, err)
	}
	if info, err := os.Lstat(manifest); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
}

func TestReadKeys_ReportInvalidFiles(t *testing.T) {
	t.Parallel()
	_, public := keys(t)
	if _, err := bundle.ReadPrivateKey(public); err == nil || !strings.Contains(err.Error(), "BEGIN PRIVATE KEY") {
		t.Error(err)
	}
	if _, err := bundle.ReadRoots(public, filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("missing root was accepted")
	}
	b := &bundle.Bundle{Path: "x.wasm"}
	if err := b.Sign(nil); err == nil || !strings.Contains(err.Error(), "is a single module") {
		t.Error(err)
	}
}

// A policy must not get limits that stop a server: one error lists all that are too large.
func TestParseManifest_BoundsLimits(t *testing.T) {
	t.Parallel()
	_, err := bundle.ParseManifest("policy.yaml", []byte(`version: 1
name: greedy
kind: wasm
module: m.wasm
abi: {min: "1.0"}
limits: {fuel: 18446744073709551615, fuelPerRow: 1000001, memory: 1GiB, time: 1h}
`))
	for _, name := range []string{"limits.fuel:", "limits.fuelPerRow:", "limits.memory:", "limits.time:"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not reported: %v", name, err)
		}
	}
}
