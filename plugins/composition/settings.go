package composition

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// camelCase returns the name of a policy as the begin of a setting: least-waste gives
// leastWaste.
func camelCase(name string) string {
	var b strings.Builder
	upper := false
	for _, c := range name {
		switch {
		case c == '-' || c == '.':
			upper = b.Len() > 0
			continue
		case b.Len() == 0 && unicode.IsDigit(c):
			b.WriteByte('p') // a setting begins with a letter
		case upper:
			c = unicode.ToUpper(c)
		}
		upper = false
		b.WriteRune(c)
	}
	return b.String()
}

// nameOf returns the name of a part's setting in the composition.
func (p *part) nameOf(setting string) string {
	return p.prefix + strings.ToUpper(setting[:1]) + setting[1:]
}

// combineSettings sets the settings of all parts under their names in the composition. The error
// lists every setting of a part that it does not accept. Such a part has its own defaults, so that
// its hooks can be read all the same.
func (m *Module) combineSettings() error {
	var list []sdk.Setting
	var errs []error
	for i := range m.parts {
		p := &m.parts[i]
		changed, err := p.withDefaults()
		if err != nil {
			errs = append(errs, ofPart(p.Name, err))
			p.Config, changed = nil, p.own
		}
		for _, s := range changed {
			s.Name = p.nameOf(s.Name)
			list = append(list, s)
		}
	}
	m.settings = list
	return errors.Join(append(errs, settings.Check(list))...)
}

// withDefaults returns the part's own settings, with the values of its configuration as
// defaults.
func (p *part) withDefaults() ([]sdk.Setting, error) {
	list := slices.Clone(p.own)
	given, err := settings.Given(p.own, p.Config)
	if err != nil {
		return nil, err
	}
	for i := range list {
		s := &list[i]
		values, ok := given[s.Name]
		if !ok {
			continue
		}
		if s.Default, err = textOf(values); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		s.Required = false
	}
	return list, nil
}

// textOf returns values as the default of a setting.
func textOf(values []sdk.Value) (string, error) {
	var items []string
	for _, v := range values {
		text := ""
		switch v.Kind {
		case sdk.Bool:
			text = strconv.FormatBool(v.Integer != 0)
		case sdk.Integer:
			text = strconv.FormatInt(v.Integer, 10)
		case sdk.Duration:
			text = time.Duration(v.Integer).String()
		case sdk.Number:
			text = strconv.FormatFloat(v.Number, 'g', -1, 64)
		case sdk.Text:
			return v.Text, nil
		case sdk.Texts:
			if text = v.Text; text == "" || strings.TrimSpace(text) != text || strings.Contains(text, ",") {
				return "", notDefault(text)
			}
		case sdk.Numbers:
			if strings.TrimSpace(v.Item) != v.Item || strings.ContainsAny(v.Item, ",=") {
				return "", notDefault(v.Item)
			}
			text = v.Item + "=" + strconv.FormatFloat(v.Number, 'g', -1, 64)
		}
		items = append(items, text)
	}
	return strings.Join(items, ","), nil
}

// notDefault is the error of an item that the text of a default cannot contain.
func notDefault(item string) error {
	return fmt.Errorf("%q cannot be part of a default: set it in the configuration of the composition instead", item)
}

// configOf returns the part's own configuration.
func (p *part) configOf(c *sdk.Config) *sdk.Config {
	var values []sdk.Value
	for _, s := range p.own {
		name := p.nameOf(s.Name)
		for _, v := range c.Values() {
			if v.Name == name {
				v.Name = s.Name
				values = append(values, v)
			}
		}
	}
	return sdk.NewConfig(p.own, values)
}
