// Package plainjson states errors of encoding/json without the types of Go programs. It
// decodes as encoding/json does, and is safe for concurrent use.
package plainjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Unmarshal is json.Unmarshal with the errors of Explain.
func Unmarshal(data []byte, v any) error { return Explain(json.Unmarshal(data, v)) }

// Explain returns an error of encoding/json in plain words, such as "picks: expected a list,
// found a string". It returns io.EOF, other errors and nil as they are.
func Explain(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text := fmt.Sprintf("expected %s, found %s", kindName(wrong.Type), valueName(wrong.Value))
		if wrong.Field != "" {
			text = wrong.Field + ": " + text
		}
		return errors.New(text)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || err != nil && err.Error() == "unexpected end of JSON input" {
		return errors.New("the text ends inside a value")
	}
	if err != nil && err != io.EOF && strings.HasPrefix(err.Error(), "json: ") { //nolint:errorlint // io.EOF is not wrapped
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return err
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindName(t.Elem())
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a finite number"
	}
	return "an integer of at most " + fmt.Sprint(t.Bits()) + " bits"
}

// valueName names a value as encoding/json does: its kind, of numbers with the number.
func valueName(value string) string {
	switch value {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	}
	return value
}
