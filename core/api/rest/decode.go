package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Decode decodes one JSON object into v and returns the paths of fields that v does
// not have. Unknown fields that are null, false, zero or empty are ignored, because
// Nomad's clients send every field. It returns a Failure if the body is empty, nests
// too deep, or is invalid.
func Decode(text []byte, v any, depth int) (unknown []string, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, Invalid("the body is empty: it must be a JSON object")
	}
	if err := checkDepth(text, depth); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, JSONError(text, err)
	}
	var raw any
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, JSONError(text, err)
	}
	if _, ok := raw.(map[string]any); !ok {
		return nil, Invalid("the body is %s: it must be a JSON object", kindOf(raw))
	}
	list := unknownFields(nil, "", raw, reflect.TypeOf(v))
	return list, nil
}

// checkDepth rejects a body that nests too deep before it is decoded.
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
				return Invalid("the body nests deeper than %d levels, at %s", most, lineColumn(text, int64(i)))
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return nil
}

// JSONError returns a Failure that describes and locates the problem of a body.
func JSONError(text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return Invalid("%s is %s at %s: it must be %s", kind.Field, jsonKind(kind.Value), lineColumn(text, kind.Offset), wanted(kind.Type)).
			With("Field", kind.Field)
	case errors.As(err, &kind):
		return Invalid("the body is %s: it must be %s", jsonKind(kind.Value), wanted(kind.Type))
	case errors.As(err, &syntax):
		return Invalid("the body is not valid JSON at %s: %s", lineColumn(text, syntax.Offset), syntax.Error())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Invalid("the body is not valid JSON: unexpected end")
	}
	return Invalid("the body cannot be read: %v", err)
}

// lineColumn returns a position in a body, counted from 1.
func lineColumn(text []byte, offset int64) string {
	before := text[:min(max(offset, 0), int64(len(text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}

// jsonKind returns a kind of JSON value, as encoding/json names it, with an article.
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

// wanted describes the JSON value that a Go type requires.
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
		return "an integer from 0 to " + strconv.FormatUint(1<<t.Bits()-1, 10)
	}
	return "an integer"
}
