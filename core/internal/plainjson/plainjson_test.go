package plainjson

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestUnmarshal_ErrorsNameNoTypesOfGo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:              "expected an object, found a list",
		`{"a": "x"}`:      "a: expected a list, found a text",
		`{"a": [[1]]}`:    "a: expected an integer of at most 32 bits, found a list",
		`{"a": [1e12]}`:   "a: expected an integer of at most 32 bits, found number 1e12",
		`{"b": 1e999}`:    "b: expected a finite number, found number 1e999",
		`{"c": {"d": 1}}`: "c.d: expected true or false, found number",
		`{"a": [`:         "the text ends inside a value",
	} {
		var v struct {
			A []int32
			B *float64
			C struct{ D bool }
		}
		if err := Unmarshal([]byte(text), &v); err == nil || !strings.EqualFold(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestExplain_KeepsTheEnd(t *testing.T) {
	t.Parallel()
	var v int
	if err := Explain(json.NewDecoder(strings.NewReader("")).Decode(&v)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := Explain(json.NewDecoder(strings.NewReader("[1")).Decode(&v)); err == nil || err.Error() != "the text ends inside a value" {
		t.Error(err)
	}
	if err := Explain(nil); err != nil {
		t.Error(err)
	}
}
