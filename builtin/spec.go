package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Spec is a reference to a policy on the command line or in the `policy` and `use`
// fields of a scenario: P, or P?key=value&key=value.
type Spec struct {
	Use    string
	Config map[string]any // nil if there is none
}

// Parse parses a Spec. A value is decoded as number, true, false or null if possible,
// otherwise as text; %26 encodes &.
func Parse(text string) (Spec, error) {
	use, query, configured := strings.Cut(text, "?")
	s := Spec{Use: use}
	if use == "" {
		return s, fmt.Errorf("invalid policy %q: expected P or P?key=value&key=value", text)
	}
	if !configured {
		return s, nil
	}
	s.Config = map[string]any{}
	var errs []error
	for pair := range strings.SplitSeq(query, "&") {
		if err := s.set(pair); err != nil {
			errs = append(errs, fmt.Errorf("policy %s: %w", use, err))
		}
	}
	return s, errors.Join(errs...)
}

func (s *Spec) set(pair string) error {
	key, value, ok := strings.Cut(pair, "=")
	if !ok || key == "" {
		return fmt.Errorf("invalid setting %q: expected key=value", pair)
	}
	key, err := url.PathUnescape(key)
	if err != nil {
		return fmt.Errorf("%s: %w", pair, err)
	}
	if value, err = url.PathUnescape(value); err != nil {
		return fmt.Errorf("%s: %w", pair, err)
	}
	if _, duplicate := s.Config[key]; duplicate {
		return fmt.Errorf("duplicate setting %s", key)
	}
	s.Config[key] = scalar(value)
	return nil
}

// scalar returns a JSON number, boolean or null if text is one; otherwise the text
// itself.
func scalar(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() || d.InputOffset() != int64(len(text)) {
		return text
	}
	switch v := v.(type) {
	case json.Number, bool, nil:
		return v
	case string:
		return v // a quoted value such as "10" is text
	}
	return text
}
