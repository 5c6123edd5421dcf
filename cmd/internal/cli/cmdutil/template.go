package cmdutil

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/template"
)

// parseTemplate parses the value of -t.
func parseTemplate(text string) (*template.Template, error) {
	return template.New("-t").Option("missingkey=error").Funcs(template.FuncMap{
		"json": func(v any) (string, error) {
			text, err := json.Marshal(v)
			return string(text), err
		},
		"join": func(separator string, list []any) string {
			words := make([]string, len(list))
			for i, v := range list {
				words[i] = fmt.Sprint(v)
			}
			return strings.Join(words, separator)
		},
	}).Parse(text)
}

// templateError matches the errors of text/template: line, column, action and problem.
var templateError = regexp.MustCompile(`^template: -t:(\d+)(?::(\d+))?: (?:executing "-t" at <(.*)>: )?(.*)$`)

// templateProblem returns the error of a template with its place, in the user's terms.
func templateProblem(err error) string {
	m := templateError.FindStringSubmatch(err.Error())
	if m == nil {
		return err.Error()
	}
	at := "line " + m[1]
	if m[2] != "" {
		at += ", column " + m[2]
	}
	if m[3] != "" {
		at += ": " + m[3]
	}
	return at + ": " + strings.Replace(m[4], "map has no entry for key", "unknown field", 1)
}

// ExecuteTemplate executes a template on the JSON of a document, so that fields have
// the names that -o json shows.
func ExecuteTemplate(w io.Writer, t *template.Template, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var plain any
	if err := d.Decode(&plain); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, numbers(plain)); err != nil {
		return Usagef("-o json shows the available fields", "invalid -t: %s", templateProblem(err))
	}
	if !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
		out.WriteByte('\n')
	}
	_, err = out.WriteTo(w)
	return err
}

// numbers converts JSON numbers to Go numbers; integers remain integers.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // the value was a float64 before
		return f
	}
	return v
}
