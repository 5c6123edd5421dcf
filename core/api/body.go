package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// body reads the request's JSON into v, a pointer to a struct. Fields that v
// does not have are an error that names them all.
func (c *call) body(v any) error {
	text, err := c.text(c.api.cfg.Limits.Body)
	if err != nil {
		return err
	}
	unknown, err := decode(text, v, c.api.cfg.Limits.Depth)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		return invalid("the body has %s that nobody reads here: %s", fields(len(unknown)), strings.Join(unknown, ", ")).
			hint("names of fields are those of GET /v1/openapi.json").with("Unknown", unknown)
	}
	return nil
}

// samePath is whether a body is about what the path names; it may leave that out.
func samePath(what, path, body string) error {
	if body != "" && body != path {
		return invalid("the path is of %s %s, and the body of %s", what, quote(path), quote(body))
	}
	return nil
}

func fields(n int) string {
	if n == 1 {
		return "a field"
	}
	return "fields"
}

// jobBody is body for requests that carry a job of Nomad's: fields that say
// something and are not read are returned as warnings, by name.
func (c *call) jobBody(v any) (warnings []string, err error) {
	text, err := c.text(c.api.cfg.Limits.Job)
	if err != nil {
		return nil, err
	}
	unknown, err := decode(text, v, c.api.cfg.Limits.Depth)
	for _, name := range unknown {
		warnings = append(warnings, name+" is not acted upon")
	}
	return warnings, err
}

// text is the request's body. The client has a deadline for it, which is taken
// away again: the answer may be long in coming.
func (c *call) text(limit int64) ([]byte, error) {
	if kind := c.r.Header.Get("Content-Type"); kind != "" {
		if name, _, err := mime.ParseMediaType(kind); err != nil || !jsonType(name) {
			return nil, invalid("the body is %s: want application/json", quote(kind))
		}
	}
	if c.r.ContentLength > limit { // it says so itself: nobody need wait for it
		return nil, bodyTooLarge(limit)
	}
	reader := c.bodyWithin(limit, c.api.cfg.Limits.Read)
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, bodyError(err)
	}
	c.bodyDone()
	return text, nil
}

// jsonType is whether a content type may be JSON. What curl -d sends is taken
// for it: everybody's first request is made so.
func jsonType(name string) bool {
	return name == "application/json" || name == "application/x-www-form-urlencoded" || name == "text/plain"
}

// bodyWithin is the request's body, of at most limit bytes, which must be there
// after d.
func (c *call) bodyWithin(limit int64, d time.Duration) io.Reader {
	_ = c.w.control.SetReadDeadline(time.Now().Add(d)) // what has no deadlines needs none
	return http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, limit)
}

// bodyDone says that the body was read to its end.
func (c *call) bodyDone() {
	c.w.bodyRead = true
	_ = c.w.control.SetReadDeadline(time.Time{})
}

func bodyError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return bodyTooLarge(tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		f := invalid("the body took too long to arrive").hint("send as many bytes as Content-Length says, without a pause")
		f.status = http.StatusRequestTimeout
		return f
	}
	return invalid("the body broke off: %v", err)
}

// decode reads one JSON object into v, and lists the fields that v does not
// have and that say something: null, false, zero and what is empty do not.
func decode(text []byte, v any, depth int) (unknown []string, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, invalid("the body is empty: want a JSON object")
	}
	if err := checkDepth(text, depth); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, jsonError(text, err)
	}
	var raw any
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, jsonError(text, err)
	}
	if _, ok := raw.(map[string]any); !ok {
		return nil, invalid("the body is %s: want a JSON object", kindOf(raw))
	}
	list := unknownFields(nil, "", raw, reflect.TypeOf(v))
	return list, nil
}

// checkDepth refuses what nests too deep before anything is built of it.
func checkDepth(text []byte, most int) error {
	depth, inText := 0, false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case inText && b == '\\':
			i++
		case b == '"':
			inText = !inText
		case inText:
		case b == '{' || b == '[':
			if depth++; depth > most {
				return invalid("the body nests deeper than %d levels, at %s", most, lineColumn(text, int64(i)))
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return nil
}

// jsonError says what is wrong with a body, and where.
func jsonError(text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return invalid("%s is %s at %s: want %s", kind.Field, jsonKind(kind.Value), lineColumn(text, kind.Offset), wanted(kind.Type)).
			with("Field", kind.Field)
	case errors.As(err, &kind):
		return invalid("the body is %s: want %s", jsonKind(kind.Value), wanted(kind.Type))
	case errors.As(err, &syntax):
		return invalid("the body is no JSON at %s: %s", lineColumn(text, syntax.Offset), syntax.Error())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("the body is no JSON: it ends too early")
	}
	return invalid("the body cannot be read: %v", err)
}

// lineColumn is a place in a body, as people count.
func lineColumn(text []byte, offset int64) string {
	before := text[:min(max(offset, 0), int64(len(text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}

// jsonKind is a kind of JSON value as encoding/json calls it, with an article.
func jsonKind(value string) string {
	name, rest, _ := strings.Cut(value, " ")
	switch name {
	case "array", "object":
		return "an " + name
	case "bool":
		return "true or false"
	case "number":
		if rest != "" {
			return "the number " + rest
		}
	}
	return "a " + name
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}

// wanted is what a Go type wants of JSON.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[time.Duration]() {
		return "a whole number of nanoseconds"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number from 0 to " + strconv.FormatUint(1<<t.Bits()-1, 10)
	}
	return "a whole number"
}
