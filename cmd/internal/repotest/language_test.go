package repotest

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "lower the ceilings in testdata/language.txt to today's counts")

// A wordRule bounds how often words of one kind occur in comments, string
// literals and Markdown, per 10,000 words. The bounds are the rates of wazero,
// hashicorp/raft and Nomad's scheduler.
type wordRule struct {
	name     string
	pattern  *regexp.Regexp
	rate     float64
	isFloor  bool // the rate is the least allowed, not the most
	comments bool // only comments count
}

var wordRules = []wordRule{
	{name: "nobody", pattern: regexp.MustCompile(`(?i)\b(nobody|somebody|anybody)\b`), rate: 1},
	{name: "who", pattern: regexp.MustCompile(`(?i)\b(who|whom|whose|whoever)\b`), rate: 6},
	{name: "what", pattern: regexp.MustCompile(`(?i)\b(what|whatever)\b`), rate: 20},
	{name: "say", pattern: regexp.MustCompile(`(?i)\b(tells?|told|says?|said|asks?|asked|know|knows|known|knew)\b`), rate: 12},
	{name: "xis", pattern: regexp.MustCompile(`^\w+ (is|are) (whether|who|what)\b`)},
	{name: "isno", pattern: regexp.MustCompile(`\bis no [a-z]`)},
	{name: "if", pattern: regexp.MustCompile(`(?i)\bif\b`), rate: 60, isFloor: true},
	{name: "return", pattern: regexp.MustCompile(`(?i)\breturns?\b`), rate: 40, isFloor: true, comments: true},
}

var anyWord = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)

// A language counts the words of one folder.
type language struct {
	words, commentWords int
	counts              map[string]int
	lines               map[string][]string // of each rule that is a ceiling: where its words are
	commentLines, code  int                 // lines of Go files that are neither tests nor generated
}

func newLanguage() *language {
	return &language{counts: map[string]int{}, lines: map[string][]string{}}
}

func (l *language) add(where, text string, isComment bool) {
	text = strings.ReplaceAll(text, "what-if", "whatif") // the name of a flag
	words := len(anyWord.FindAllString(text, -1))
	l.words += words
	if isComment {
		l.commentWords += words
	}
	for _, r := range wordRules {
		if r.rate == 0 || r.comments && !isComment {
			continue
		}
		l.count(r, where, text)
	}
}

func (l *language) count(r wordRule, where, text string) {
	n := len(r.pattern.FindAllString(text, -1))
	l.counts[r.name] += n
	if n > 0 && !r.isFloor {
		l.lines[r.name] = append(l.lines[r.name], fmt.Sprintf("%s: %.120s", where, strings.TrimSpace(text)))
	}
}

// allowed returns how often the words of a rule may occur, by its rate alone. In a small
// folder, two occurrences are not a rate yet.
func (l *language) allowed(r wordRule) float64 {
	if least := 2.0; !r.isFloor && r.rate > 0 {
		return max(least, r.rate*float64(l.words)/10000)
	}
	if r.comments {
		return r.rate * float64(l.commentWords) / 10000
	}
	return r.rate * float64(l.words) / 10000
}

// addMarkdown counts the prose of a page; code blocks do not count.
func (l *language) addMarkdown(file, text string) {
	for line := range strings.Lines(codeBlock.ReplaceAllString(text, "")) {
		l.add(file, inlineCode.ReplaceAllString(line, ""), false)
	}
}

// addComments counts the comments of a file in another language: lines that begin with
// one of the markers.
func (l *language) addComments(file, text string, markers []string) {
	at := 0
	for line := range strings.Lines(text) {
		at++
		line = strings.TrimSpace(line)
		for _, marker := range markers {
			if prose, ok := strings.CutPrefix(line, marker); ok {
				l.add(fmt.Sprintf("%s:%d", file, at), prose, false)
				break
			}
		}
	}
}

// addTopic counts the prose of a help topic; indented lines are examples and tables.
func (l *language) addTopic(file, text string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "  ") {
			l.add(file, line, false)
		}
	}
}

// commentMarkers holds the markers of comments by the extension of a file.
var commentMarkers = map[string][]string{
	".c": {"//"}, ".h": {"//"}, ".rs": {"//"}, ".ts": {"//", "/*", "*"}, ".proto": {"//"}, ".wat": {";;"},
	".txt": {"#"}, ".txtar": {"#"}, ".yaml": {"#"}, ".hcl": {"#"}, ".sh": {"#"},
}

// addGo counts comments and string literals that hold a space.
func (l *language) addGo(t *testing.T, file, text string) {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(parsed) {
		return
	}
	for _, group := range parsed.Comments {
		where := fset.Position(group.Pos()).String()
		prose := group.Text() // without directives
		l.add(where, prose, true)
		l.count(wordRules[4], where, prose)
	}
	if !strings.HasSuffix(file, "_test.go") {
		comments, code := lineCounts(text)
		l.commentLines, l.code = l.commentLines+comments, l.code+code
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil || !strings.Contains(value, " ") {
			return true
		}
		where := fset.Position(literal.Pos()).String()
		l.add(where, value, false)
		l.count(wordRules[5], where, strings.ReplaceAll(value, "is no longer", ""))
		return true
	})
}

// lineCounts returns the numbers of comment lines and of code lines. A comment that
// follows code on its line does not count as a line of comment, and a directive counts
// as code: neither is an explanation that stands for itself.
func lineCounts(text string) (comments, code int) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "//go:") && !strings.HasPrefix(line, "//nolint"):
			comments++
		default:
			code++
		}
	}
	return comments, code
}

var (
	countedLanguages map[string]*language
	countMutex       sync.Mutex
)

// languages returns the counts of each folder with prose. It reads the tree once for all
// tests, which must not change the result.
func languages(t *testing.T) map[string]*language {
	t.Helper()
	countMutex.Lock()
	defer countMutex.Unlock()
	if countedLanguages != nil {
		return countedLanguages
	}
	found := map[string]*language{}
	all := append(files(t, ".go", ".md"), filesBut(t, []string{"target"}, slices.Collect(maps.Keys(commentMarkers))...)...)
	for _, file := range all {
		dir := path.Dir(file)
		if found[dir] == nil {
			found[dir] = newLanguage()
		}
		switch l, text := found[dir], read(t, file); {
		case strings.HasSuffix(file, "repotest/language_test.go"): // it lists the words
		case strings.HasSuffix(file, ".md"):
			l.addMarkdown(file, text)
		case strings.HasSuffix(file, ".go"):
			l.addGo(t, file, text)
		case strings.HasSuffix(dir, "/topics"):
			l.addTopic(file, text)
		default:
			l.addComments(file, text, commentMarkers[path.Ext(file)])
		}
	}
	countedLanguages = found
	return found
}

const ceilingsFile = "testdata/language.txt"

// TestLanguage_NoFolderGetsWorse compares each folder with the higher of two
// ceilings: the rate of the rule, and the count recorded for the folder. Recorded
// counts only fall: run `go test ./cmd/internal/repotest -run Language -update`.
func TestLanguage_NoFolderGetsWorse(t *testing.T) {
	t.Parallel()
	ceilings := readCeilings(t)
	all := languages(t)
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		l := all[dir]
		for _, r := range wordRules {
			key, n := dir+" "+r.name, l.counts[r.name]
			if r.isFloor || float64(n) <= l.allowed(r) || n <= ceilings[key] {
				continue
			}
			if !*update || ceilings[key] > 0 {
				t.Errorf("%s: rule %q: %d words, allowed are %d; rewrite them as plain statements:\n\t%s",
					dir, r.name, n, max(ceilings[key], int(l.allowed(r))), strings.Join(l.lines[r.name], "\n\t"))
			}
		}
	}
	if *update {
		writeCeilings(t, ceilings, all)
	}
}

// TestLanguage_WholeTree holds the sums of the tree to the rates.
func TestLanguage_WholeTree(t *testing.T) {
	t.Parallel()
	sum := newLanguage()
	for _, l := range languages(t) {
		sum.words += l.words
		sum.commentWords += l.commentWords
		for name, n := range l.counts {
			sum.counts[name] += n
		}
	}
	for _, r := range wordRules {
		n, allowed := float64(sum.counts[r.name]), sum.allowed(r)
		t.Logf("%s: %.0f, bound %.0f", r.name, n, allowed)
		if r.isFloor && n < allowed || !r.isFloor && n > allowed {
			t.Errorf("rule %q: %.0f words in the tree, the bound is %.0f", r.name, n, allowed)
		}
	}
}

// TestLanguage_HardPackagesAreCommented requires one line of comment to five of
// code where a reader needs the reasons most. It counts each tree as a whole, with its
// test helpers and without tests and generated files.
func TestLanguage_HardPackagesAreCommented(t *testing.T) {
	t.Parallel()
	all := languages(t)
	for _, root := range []string{"core/scheduler", "core/preempt", "core/planner", "core/replication", "core/state", "core/storage"} {
		comments, code := 0, 0
		for dir, l := range all {
			if dir == root || strings.HasPrefix(dir, root+"/") {
				comments, code = comments+l.commentLines, code+l.code
			}
		}
		t.Logf("%s: %d lines of comment to %d of code: %.3f", root, comments, code, float64(comments)/float64(code))
		if code == 0 || comments*5 < code {
			t.Errorf("%s: %d lines of comment to %d of code, at least %d are required: comment the reasons, invariants, units and errors of its least commented files",
				root, comments, code, (code+4)/5)
		}
	}
}

func readCeilings(t *testing.T) map[string]int {
	t.Helper()
	ceilings := map[string]int{}
	text, err := os.ReadFile(ceilingsFile)
	if os.IsNotExist(err) {
		return ceilings
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			t.Fatalf("%s: invalid line %q: want FOLDER RULE COUNT", ceilingsFile, line)
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		ceilings[fields[0]+" "+fields[1]] = n
	}
	return ceilings
}

// writeCeilings records the counts that are above their rate. A recorded count is
// never raised.
func writeCeilings(t *testing.T, old map[string]int, all map[string]*language) {
	t.Helper()
	var lines []string
	for dir, l := range all {
		for _, r := range wordRules {
			n := l.counts[r.name]
			if r.isFloor || float64(n) <= l.allowed(r) {
				continue
			}
			if before, ok := old[dir+" "+r.name]; ok {
				n = min(n, before)
			}
			lines = append(lines, fmt.Sprintf("%s %s %d\n", dir, r.name, n))
		}
	}
	slices.SortFunc(lines, cmp.Compare[string])
	if err := os.MkdirAll(filepath.Dir(ceilingsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ceilingsFile, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLanguage_CountsOnAnInventedFile(t *testing.T) {
	t.Parallel()
	l := newLanguage()
	l.addGo(t, "invented.go", "package p\n\n// F is whether somebody asks. If so, it returns.\nfunc F() { g(\"that is no node\", \"who?\") } // trailing\n\n//go:noinline\n")
	l.addMarkdown("page.md", "What `who` returns.\n```\nwho knows\n```\n")
	l.addComments("story.txt", "# nobody\nwho\n", []string{"#"})
	l.addTopic("topic.txt", "What:\n  who\n")
	want := map[string]int{"nobody": 2, "who": 0, "what": 2, "say": 1, "xis": 1, "isno": 1, "if": 1, "return": 1}
	if got := l.counts; !maps.EqualFunc(got, want, func(a, b int) bool { return a == b }) {
		t.Errorf("got %v, want %v", got, want)
	}
	if l.commentLines != 1 || l.code != 3 {
		t.Errorf("got %d lines of comment and %d of code, want 1 and 3", l.commentLines, l.code)
	}
}

// retired lists identifiers of an earlier vocabulary. The standard terms are in
// docs/concepts/glossary.md.
const retiredFile = "testdata/retired.txt"

// TestLanguage_RetiredIdentifiersStayRetired refuses declarations under names
// that were replaced by standard terms.
func TestLanguage_RetiredIdentifiersStayRetired(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(retiredFile)
	if err != nil {
		t.Fatal(err)
	}
	instead := map[string]string{}
	for line := range bytes.Lines(text) {
		if name, use, ok := strings.Cut(strings.TrimSpace(string(line)), " "); ok {
			instead[name] = use
		}
	}
	for _, file := range files(t, ".go") {
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, read(t, file), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range declared(parsed) {
			if use, ok := instead[name.Name]; ok {
				t.Errorf("%s: identifier %q is retired: use %s", fset.Position(name.Pos()), name.Name, use)
			}
		}
	}
}

// declared returns the names of a file's functions, methods, types, fields,
// constants and variables of packages.
func declared(file *ast.File) (names []*ast.Ident) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					names = append(names, spec.Names...)
				case *ast.TypeSpec:
					names = append(names, spec.Name)
					names = append(names, members(spec.Type)...)
				}
			}
		}
	}
	return names
}

func members(e ast.Expr) (names []*ast.Ident) {
	var list *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		list = e.Fields
	case *ast.InterfaceType:
		list = e.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		names = append(names, f.Names...)
	}
	return names
}
