package config

import (
	"fmt"
	"reflect"
	"strconv"
)

// scalar parses a text as a number or a boolean.
func scalar(text string, to reflect.Type) (v any, err error) {
	switch to.Kind() {
	case reflect.Bool:
		v, err = strconv.ParseBool(text)
	case reflect.Float64:
		v, err = strconv.ParseFloat(text, 64)
	default:
		v, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		return nil, fmt.Errorf("%sinvalid value %q: expected %s", decodeErrorMark, text, kindName(to))
	}
	return v, nil
}
