package cmdutil

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/cmd/internal/term"
)

// Formats of -o.
const (
	formatTable = "table"
	formatWide  = "wide"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
	formatName  = "name"
)

func formats() []string { return []string{formatTable, FormatJSON, FormatYAML, formatWide, formatName} }

// envFormat is the variable with the default of -o.
const envFormat = "CEDE_FORMAT"

// An Output prints the results of a command in the format of its flags.
type Output struct {
	env       *Env
	Format    string
	noHeaders bool
	text      string // of the template
	template  *template.Template
	Printed   int
}

// OutputFlags adds -o, --no-headers and -t to a command.
func OutputFlags(cmd *cobra.Command, env *Env) *Output {
	o := &Output{env: env}
	f := cmd.Flags()
	f.StringVarP(&o.Format, "output", "o", "", "`FORMAT` of results: "+strings.Join(formats(), ", ")+" (default table)")
	f.BoolVar(&o.noHeaders, "no-headers", false, "omit the headers of tables")
	f.StringVarP(&o.text, "template", "t", "", "format results with a Go `TEMPLATE` on the JSON; see cede help output")
	CompleteFlag(cmd, "output", formats())
	return o
}

// Resolve checks the flags. It is called before the command does anything.
func (o *Output) Resolve() error {
	from := "-o"
	if o.Format == "" {
		o.Format, from = o.env.Getenv(envFormat), envFormat
	} else if o.text != "" {
		return Usagef("remove one of them", "-o and -t are mutually exclusive")
	}
	o.Format = cmp.Or(o.Format, formatTable)
	if !slices.Contains(formats(), o.Format) {
		return Usagef("use "+JoinOr(formats()), "invalid output format %s %q", from, o.Format)
	}
	if o.text == "" {
		return nil
	}
	var err error
	if o.template, err = parseTemplate(o.text); err != nil {
		return Usagef("`cede help output` describes templates", "invalid -t: %s", templateProblem(err))
	}
	return nil
}

// IsHumanReadable reports whether the format is a table or text, rather than JSON or YAML.
func (o *Output) IsHumanReadable() bool { return o.Format != FormatJSON && o.Format != FormatYAML }

// A Document is a result in every form in which it can be printed.
type Document struct {
	Data  any        // for JSON and YAML
	Names []string   // IDs of the objects
	Page  func(Page) // for text output
}

// Show prints one document.
func (o *Output) Show(d Document) error {
	o.Printed++
	w := bufio.NewWriterSize(o.env.Stdout, 1<<16)
	err := o.write(w, d)
	if err == nil {
		err = WriteError("standard output", w.Flush())
	}
	return err
}

func (o *Output) write(w *bufio.Writer, d Document) error {
	if o.template != nil {
		return ExecuteTemplate(w, o.template, d.Data)
	}
	switch o.Format {
	case FormatJSON:
		return EncodeJSON(w, d.Data)
	case FormatYAML:
		return o.yaml(w, d.Data)
	case formatName:
		for _, n := range d.Names {
			_, _ = fmt.Fprintln(w, n) // w stores the error
		}
		return nil
	}
	if o.Printed > 1 {
		_ = w.WriteByte('\n')
	}
	page := Page{W: w, Style: o.env.StdoutStyle(), Wide: o.Format == formatWide, NoHeaders: o.noHeaders}
	if width := o.env.Columns(); width > 0 && !page.Wide && !page.NoHeaders {
		folded := term.NewFoldWriter(w, width)
		page.W = bufio.NewWriter(folded)
		d.Page(page)
		return errors.Join(page.W.Flush(), folded.Flush())
	}
	d.Page(page)
	return nil
}

// EncodeJSON writes a document as one line.
func EncodeJSON(w io.Writer, data any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(data)
}

// yaml writes the JSON document in YAML block style, with the same fields in the same
// order.
func (o *Output) yaml(w io.Writer, data any) error {
	var text bytes.Buffer
	if err := EncodeJSON(&text, data); err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text.Bytes(), &node); err != nil {
		return err
	}
	unflow(&node)
	if o.Printed > 1 {
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

// unflow clears the flow and quoting styles that JSON implies. The encoder adds
// quotes again if a value requires them.
func unflow(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		unflow(c)
	}
}

// A Page prints a document as text. Write errors are kept by W.
type Page struct {
	W         *bufio.Writer
	Style     term.Style
	Wide      bool // show all rows and columns
	NoHeaders bool // omit titles
}

// Printf writes to the page and ignores errors of the writer.
func (p Page) Printf(format string, args ...any) { _, _ = fmt.Fprintf(p.W, format, args...) }

// Title starts a section.
func (p Page) Title(text string) {
	if !p.NoHeaders {
		p.Printf("\n%s\n", p.Style.Text(term.Bold, text))
	}
}

// Table prints the table of a section.
func (p Page) Table(t *term.Table) {
	t.NoHeaders = p.NoHeaders
	if !p.NoHeaders {
		t.Indent = "  "
	}
	_ = t.Write(p.W, p.Style) // p.W stores the error
}

// ValidateChoice returns an error if the value of a flag is not one of the allowed words.
func ValidateChoice(flag, value string, allowed []string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return Usagef("use "+JoinOr(allowed), "invalid --%s %q", flag, value)
}
