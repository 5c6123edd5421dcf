package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/cmd/internal/term"
)

// The formats of -o.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatName  = "name"
)

func formats() []string { return []string{formatTable, formatJSON, formatYAML, formatWide, formatName} }

// envFormat is the variable that says what -o is where it is absent.
const envFormat = "CEDE_FORMAT"

// output is how a command prints its results.
type output struct {
	env       *Env
	format    string
	noHeaders bool
	text      string // of the template
	template  *template.Template
	printed   int
}

// outputFlags gives a command -o, --no-headers and -t.
func outputFlags(cmd *cobra.Command, env *Env) *output {
	o := &output{env: env}
	f := cmd.Flags()
	f.StringVarP(&o.format, "output", "o", "", "`FORMAT` of results: "+strings.Join(formats(), ", ")+" (default table)")
	f.BoolVar(&o.noHeaders, "no-headers", false, "leave out titles of tables and their columns")
	f.StringVarP(&o.text, "template", "t", "", "format results by a Go `TEMPLATE` over the JSON; see cede help output")
	complete(cmd, "output", formats())
	return o
}

// resolve checks the flags. It is called before anything is done.
func (o *output) resolve() error {
	from := "-o"
	if o.format == "" {
		o.format, from = o.env.Getenv(envFormat), envFormat
	} else if o.text != "" {
		return usagef("leave one of them out", "-o and -t exclude each other")
	}
	if o.format == "" {
		o.format = formatTable
	}
	if !slices.Contains(formats(), o.format) {
		return usagef("use "+oneOf(formats()), "%s %s: there is no such format", from, o.format)
	}
	if o.text == "" {
		return nil
	}
	var err error
	if o.template, err = parseTemplate(o.text); err != nil {
		return usagef("`cede help output` describes templates", "-t: %v", err)
	}
	return nil
}

// isRead is whether people read the results, rather than a program alone.
func (o *output) isRead() bool { return o.format != formatJSON && o.format != formatYAML }

// document is one result, in every form that it may be printed in.
type document struct {
	data  any        // for programs
	names []string   // the ids that it is about
	page  func(page) // for people
}

// show prints one document.
func (o *output) show(d document) error {
	o.printed++
	w := bufio.NewWriterSize(o.env.Stdout, 1<<16)
	err := o.to(w, d)
	if err == nil {
		err = writeError("standard output", w.Flush())
	}
	return err
}

func (o *output) to(w *bufio.Writer, d document) error {
	if o.template != nil {
		return executeTemplate(w, o.template, d.data)
	}
	switch o.format {
	case formatJSON:
		return encodeJSON(w, d.data)
	case formatYAML:
		return o.yaml(w, d.data)
	case formatName:
		for _, n := range d.names {
			_, _ = fmt.Fprintln(w, n) // w keeps the error
		}
		return nil
	}
	if o.printed > 1 {
		_ = w.WriteByte('\n')
	}
	d.page(page{w: w, style: o.env.stdoutStyle(), wide: o.format == formatWide, bare: o.noHeaders})
	return nil
}

// encodeJSON writes a document as one line.
func encodeJSON(w io.Writer, data any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(data)
}

// yaml writes the JSON document in YAML's block form: the same fields in the
// same order.
func (o *output) yaml(w io.Writer, data any) error {
	var text bytes.Buffer
	if err := encodeJSON(&text, data); err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text.Bytes(), &node); err != nil {
		return err
	}
	unflow(&node)
	if o.printed > 1 {
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return err
		}
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(&node); err != nil {
		return err
	}
	return e.Close()
}

// unflow drops the braces and quotes that JSON brought; what needs quotes gets
// them again.
func unflow(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		unflow(c)
	}
}

// page is where a document is laid out for people. Errors stay in w.
type page struct {
	w     *bufio.Writer
	style term.Style
	wide  bool // everything, however much
	bare  bool // no titles
}

func (p page) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format, args...) }

// title begins a section.
func (p page) title(text string) {
	if !p.bare {
		p.printf("\n%s\n", p.style.Text(term.Bold, text))
	}
}

// table prints a section's table.
func (p page) table(t *term.Table) {
	t.NoHeaders = p.bare
	if !p.bare {
		t.Indent = "  "
	}
	_ = t.Write(p.w, p.style) // p.w keeps the error
}
