package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/plainyaml"
	"github.com/cede-scheduler/cede/core/suggest"
)

// separator joins the names of a key inside koanf. It cannot occur in a name; names
// of attributes may contain dots and slashes.
const separator = "\x1f"

// envPrefix is the prefix of variables that set keys, such as CEDE_SERVER__WORKERS.
const envPrefix = "CEDE_"

// Sources lists the sources of a configuration.
type Sources struct {
	// Files are YAML files or directories of them; later ones take precedence. If a
	// directory config.d exists next to a file, it is read after the file.
	Files []string
	// Environ holds NAME=value pairs; may be nil.
	Environ []string
	// Flags holds values of the command line, by key.
	Flags map[string]string
	// Dev selects the defaults of a development process for keys that no layer sets.
	Dev bool
	// Kubernetes selects the role of cede kubernetes, which runs no server and no node.
	Kubernetes bool
	// Look also checks the files that the process reads: those of tls and
	// policy.roots. If it is false, the result does not depend on the machine.
	Look bool
	// NoSecrets leaves the files of secrets unread, for a configuration of another machine.
	// The process must not run with the result.
	NoSecrets bool
}

// Loaded is a configuration with the source of each value.
type Loaded struct {
	Config
	sources Sources
	origin  map[string]string // by key; entries of maps by key.entry
}

// Problem is a problem of the configuration.
type Problem struct {
	Key   string // key with the problem; may be empty
	Where string // file:line, variable or flag
	Text  string
}

func (p Problem) String() string {
	text := p.Text
	if p.Key != "" {
		text = p.Key + ": " + text
	}
	if p.Where != "" {
		text = p.Where + ": " + text
	}
	return text
}

// Error holds all problems of a configuration.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// loader holds the state of one Load.
type loader struct {
	ko       *koanf.Koanf
	origin   map[string]string
	problems []Problem
	// invalid holds the keys whose value could not be read.
	invalid map[string]bool
	// unreadable reports that a file could not be read, so that any key may have a value
	// there.
	unreadable bool
	look       bool // see Sources
	noSecrets  bool // see Sources
}

// recordUnreadable records a file or directory that could not be read.
func (l *loader) recordUnreadable(name, format string, args ...any) {
	l.unreadable = true
	l.problem("", name, format, args...)
}

// recordInvalid marks the keys at and below path as invalid.
func (l *loader) recordInvalid(path []string) {
	for _, f := range fields() {
		if n := min(len(f.path), len(path)); slices.Equal(f.path[:n], path[:n]) {
			l.invalid[f.key] = true
		}
	}
}

func (l *loader) problem(key, where, format string, args ...any) {
	l.problems = append(l.problems, Problem{key, where, fmt.Sprintf(format, args...)})
}

// Load reads a configuration. Its error, if any, is an *Error with every problem.
func Load(s Sources) (*Loaded, error) {
	l := &loader{ko: koanf.New(separator), origin: map[string]string{}, invalid: map[string]bool{}, look: s.Look, noSecrets: s.NoSecrets}
	for _, file := range l.files(s.Files) {
		l.file(file)
	}
	l.environ(s.Environ)
	l.flags(s.Flags)
	out := &Loaded{Config: Defaults(), sources: s, origin: l.origin}
	if s.Dev {
		out.dev()
	}
	out.Controller = s.Kubernetes
	l.decode(out)
	if !l.unreadable {
		l.validate(out)
	}
	if len(l.problems) > 0 {
		return nil, &Error{l.problems}
	}
	return out, nil
}

// Reload reads the same sources again. Components read referenced files when they
// apply the result.
func (l *Loaded) Reload() (*Loaded, error) {
	s := l.sources
	s.Look = false
	return Load(s)
}

// files resolves the given names to files.
func (l *loader) files(names []string) (files []string) {
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			l.recordUnreadable(name, "%v", cause(err))
			continue
		}
		if info.IsDir() {
			files = append(files, l.folder(name)...)
			continue
		}
		files = append(files, name)
		configDir := filepath.Join(filepath.Dir(name), "config.d")
		if info, err := os.Stat(configDir); err == nil && info.IsDir() && filepath.Base(filepath.Dir(name)) != "config.d" {
			files = append(files, l.folder(configDir)...)
		}
	}
	return files
}

// folder lists the YAML files of a directory, sorted by name.
func (l *loader) folder(dir string) (files []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		l.recordUnreadable(dir, "%v", cause(err))
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files
}

func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// file loads one file.
func (l *loader) file(name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		l.recordUnreadable(name, "%v", cause(err))
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		p := plainyaml.Syntax(err, text)
		l.recordUnreadable(fmt.Sprintf("%s:%d", name, p.Line), "not valid YAML: %s", p.Message)
		return
	}
	if len(doc.Content) == 0 {
		return // the file is empty
	}
	l.mapping(name, nil, doc.Content[0])
}

// mapping loads the keys of a file below path.
func (l *loader) mapping(file string, path []string, n *yaml.Node) {
	where := func(n *yaml.Node) string { return fmt.Sprintf("%s:%d", file, n.Line) }
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		l.problem(strings.Join(path, "."), where(n), "expected a mapping of keys to values")
		l.recordInvalid(path)
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		p := append(slices.Clone(path), name.Value)
		if line, duplicate := seen[name.Value]; duplicate {
			l.problem(strings.Join(p, "."), where(name), "duplicate key, first on line %d", line)
			continue
		}
		seen[name.Value] = name.Line
		if f, ok := find(p); ok {
			l.leaf(f, p, value, where(name))
		} else if isSection(p) {
			l.mapping(file, p, value)
		} else {
			l.unknown(p, where(name))
		}
	}
}

func (l *loader) unknown(path []string, where string) {
	hint := "`cede config show` lists all keys"
	if near := suggestKey(path); near != "" {
		l.recordInvalid(strings.Split(near, "."))
		hint = suggest.Question(near)
	}
	l.problem(strings.Join(path, "."), where, "unknown key; %s", hint)
}

// leaf loads one value of a file.
func (l *loader) leaf(f field, path []string, n *yaml.Node, where string) {
	var v any
	if err := n.Decode(&v); err != nil {
		l.problem(f.key, where, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		l.recordInvalid(f.path)
		return
	}
	if v == nil {
		return // empty value: the key is not set
	}
	if text, ok := v.(string); f.secret && (!ok || text != "" && !strings.HasPrefix(text, filePrefix)) {
		l.problem(f.key, where, "secrets are not allowed in configuration files: use %sPATH, or set %s", filePrefix, variable(f))
		if !ok {
			l.recordInvalid(f.path)
			return
		}
		l.set(path, v, where) // other problems of the value are reported for this key
		return
	}
	l.listedSecrets(f, v, where)
	entries, isMap := v.(map[string]any)
	if !isMap {
		l.set(path, v, where)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		l.set(append(slices.Clone(path), name), entries[name], where)
	}
}

// listedSecrets records secrets in the entries of a list, which have no variable.
func (l *loader) listedSecrets(f field, v any, where string) {
	list, isList := v.([]any)
	if !isList || f.typ.Kind() != reflect.Slice || f.typ.Elem().Kind() != reflect.Struct {
		return
	}
	for _, of := range walk(f.typ.Elem(), nil, nil) {
		for i, entry := range list {
			fields, _ := entry.(map[string]any)
			text, isText := fields[of.key].(string)
			if of.secret && fields[of.key] != nil && (!isText || text != "" && !strings.HasPrefix(text, filePrefix)) {
				l.problem(f.key, where, "number %d: %s: secrets are not allowed in configuration files: use %sPATH", i+1, of.key, filePrefix)
			}
		}
	}
}

// variable returns the name of the environment variable of a field.
func variable(f field) string {
	return envPrefix + strings.ToUpper(strings.Join(f.path, "__"))
}

// set records a value. Entries of maps are recorded individually.
func (l *loader) set(path []string, v any, where string) {
	if err := l.ko.Load(confmap.Provider(map[string]any{strings.Join(path, separator): v}, separator), nil); err != nil {
		l.problem(strings.Join(path, "."), where, "%v", err)
		l.recordInvalid(path)
	}
	l.origin[strings.Join(path, ".")] = where
}

// environ loads environment variables. A variable without __ is only a key if a key
// of that name exists, because commands use other variables.
func (l *loader) environ(environ []string) {
	values := koanf.New(separator)
	names := map[string]string{}
	p := env.Provider(separator, env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "__", separator)
			if name == envPrefix+"LOG_LEVEL" {
				key = "log" + separator + "level"
			}
			if _, ok := find(strings.Split(key, separator)); !ok && !strings.Contains(key, separator) {
				return "", nil // not a variable of the configuration
			}
			names[key] = name
			return key, value
		},
	})
	if err := values.Load(p, nil); err != nil {
		l.recordUnreadable("the environment", "%v", err)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(names)) {
		path := strings.Split(key, separator)
		f, ok := find(path)
		if !ok {
			l.unknown(path, names[key])
			continue
		}
		if values.String(key) == "" && f.typ.Kind() != reflect.String && f.typ.Kind() != reflect.Slice {
			continue // an empty variable is ignored unless the key accepts an empty value
		}
		l.set(path, values.String(key), names[key])
	}
}

// flags loads settings from the command line. Secrets are rejected there, because
// other users can read it.
func (l *loader) flags(flags map[string]string) {
	const where = "the command line"
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		path := strings.Split(key, ".")
		f, ok := find(path)
		switch {
		case !ok:
			l.unknown(path, where)
		case f.secret:
			l.recordInvalid(path)
			l.problem(key, where, "secrets are not allowed on the command line: set %s, or use %sPATH in a file", variable(f), filePrefix)
		default:
			l.set(path, flags[key], where)
		}
	}
}
