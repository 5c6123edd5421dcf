package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"

	"github.com/cede-scheduler/cede/core/suggest"
)

// filePrefix marks a value as the path of a file that holds the secret.
const filePrefix = "file:"

// decode stores the loaded values in the configuration.
func (l *loader) decode(out *Loaded) {
	for _, f := range fields() {
		raw := l.ko.Get(strings.Join(f.path, separator))
		if raw == nil {
			continue
		}
		target := reflect.ValueOf(&out.Config).Elem().FieldByIndex(f.index)
		value, err := f.decode(raw, l.readSecret)
		if err != nil {
			l.recordDecodeError(f, raw, err)
			l.invalid[f.key] = true
			continue
		}
		target.Set(value)
	}
}

// recordDecodeError records a value of the wrong type. If it is a map, it records
// each entry of the wrong type.
func (l *loader) recordDecodeError(f field, raw any, err error) {
	entries, _ := raw.(map[string]any)
	reported := false
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if _, err := f.decode(map[string]any{name: entries[name]}, l.readSecret); err != nil {
			key := f.key + "." + name
			l.problem(key, cmp.Or(l.origin[key], l.location(f)), "%v", err)
			reported = true
		}
	}
	if !reported {
		l.problem(f.key, l.location(f), "%v", err)
	}
}

// location returns the source of a value; for a map, the source of its last entry.
func (l *loader) location(f field) (where string) {
	if w, ok := l.origin[f.key]; ok {
		return w
	}
	for key, w := range l.origin {
		if strings.HasPrefix(key, f.key+".") && w > where {
			where = w
		}
	}
	return where
}

// decode decodes a value of YAML, a variable or a flag.
func (f *field) decode(raw any, readSecret func(string) (Secret, error)) (reflect.Value, error) {
	target := reflect.New(f.typ)
	if text, ok := raw.(string); ok && f.typ.Kind() == reflect.Slice && f.typ.Elem().Kind() != reflect.Struct {
		raw = split(text)
	}
	if text, ok := raw.(string); ok && f.secret {
		secret, err := readSecret(text)
		return reflect.ValueOf(secret), err
	}
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: target.Interface(), TagName: "koanf", ErrorUnused: true, MatchName: func(key, name string) bool { return key == name },
		DecodeHook: mapstructure.ComposeDecodeHookFunc(hookDuration, hookSize, hookText, hookSecret(readSecret)),
	})
	if err == nil {
		err = d.Decode(raw)
	}
	if err != nil {
		return target.Elem(), plain(err, f.typ)
	}
	return target.Elem(), nil
}

// plain returns a decoding error in the user's terms.
func plain(err error, t reflect.Type) error {
	text := err.Error()
	if strings.Contains(text, "invalid keys") {
		_, unknown, _ := strings.Cut(text, "invalid keys: ")
		return fmt.Errorf("unknown field %s; %s", unknown, suggest.Field(unknown, fieldNames(t.Elem())))
	}
	if i := strings.LastIndex(text, decodeErrorMark); i >= 0 {
		text = text[i+len(decodeErrorMark):]
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Int {
			text += " or a list of them, such as [22, 9100]"
		}
		return fmt.Errorf("%s", text)
	}
	return fmt.Errorf("expected %s", kindName(t))
}

// fieldNames lists the keys of one entry of a list.
func fieldNames(t reflect.Type) []string {
	list := make([]string, t.NumField())
	for i := range list {
		list[i] = t.Field(i).Tag.Get("koanf")
	}
	return list
}

// decodeErrorMark marks errors of this package inside errors of the decoder.
const decodeErrorMark = "\x00"

func kindName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 10s"
	case reflect.TypeFor[Size]():
		return "a size such as 10MiB"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map:
		if t.Elem().Kind() == reflect.Int64 {
			return "integers by name"
		}
		return "texts by name"
	}
	return "a text"
}

func split(text string) (list []any) {
	list = []any{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// unreadSecret stands for a secret whose file is not read. It passes every check: it is long
// enough for a token, and a valid gossip key.
const unreadSecret Secret = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// readSecret returns a secret, or the content of the file that it refers to.
func (l *loader) readSecret(text string) (Secret, error) {
	path, ok := strings.CutPrefix(text, filePrefix)
	switch {
	case !ok:
		return Secret(text), nil
	case l.noSecrets:
		return unreadSecret, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, cause(err))
	}
	if secret := strings.TrimSpace(string(b)); secret != "" {
		return Secret(secret), nil
	}
	return "", fmt.Errorf("%s is empty", path)
}

// hookDuration decodes durations. It returns an error if the unit is missing, except
// for 0.
func hookDuration(_, to reflect.Type, v any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() {
		return v, nil
	}
	text, ok := v.(string)
	if v == 0 || v == "0" {
		return time.Duration(0), nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case !ok || err != nil:
		return nil, fmt.Errorf("%sinvalid duration %v: expected a number with ms, s, m or h", decodeErrorMark, v)
	case d < 0:
		return nil, fmt.Errorf("%s%v is negative", decodeErrorMark, v)
	}
	return d, nil
}

func hookSize(_, to reflect.Type, v any) (any, error) {
	if to != reflect.TypeFor[Size]() {
		return v, nil
	}
	s, err := ParseSize(fmt.Sprint(v))
	if err != nil {
		return nil, fmt.Errorf("%s%w", decodeErrorMark, err)
	}
	return s, nil
}

// hookSecret decodes secrets inside lists; other secrets are decoded as fields.
func hookSecret(readSecret func(string) (Secret, error)) func(_, to reflect.Type, v any) (any, error) {
	return func(_, to reflect.Type, v any) (any, error) {
		text, ok := v.(string)
		if !ok || to != reflect.TypeFor[Secret]() {
			return v, nil
		}
		secret, err := readSecret(text)
		if err != nil {
			return nil, fmt.Errorf("%s%w", decodeErrorMark, err)
		}
		return secret, nil
	}
}

// hookText converts the text of variables and flags to numbers and booleans. It also
// converts YAML numbers and booleans to text if the key expects text.
func hookText(from, to reflect.Type, v any) (any, error) {
	numbers := []reflect.Kind{reflect.Int, reflect.Int64, reflect.Float64, reflect.Bool}
	text := fmt.Sprint(v)
	switch {
	case from.Kind() == reflect.String && slices.Contains(numbers, to.Kind()):
		return scalar(text, to)
	case to.Kind() == reflect.String && slices.Contains(numbers, from.Kind()):
		return text, nil
	}
	return v, nil
}
