package serve

import (
	"errors"
	"strconv"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
)

var errTwice = errors.New("the policy is already configured")

func (g *guest) describe() error {
	d := abi.Description{Info: g.policy.Info(), Version: Version, Hooks: hooks(g.policy)}
	if c, ok := g.policy.(policy.Configurable); ok {
		d.Configurable = true
		d.Settings = appendSettings(nil, c.Settings())
	}
	return g.decoder.PutDescription(&d)
}

func hooks(p policy.Policy) uint32 {
	bits := uint32(0)
	if _, ok := p.(policy.DeltaHook); ok {
		bits |= abi.HookPriorityDelta
	}
	if _, ok := p.(policy.VictimScorer); ok {
		bits |= abi.HookScoreVictims
	}
	if _, ok := p.(policy.VictimSelector); ok {
		bits |= abi.HookSelectVictims
	}
	if _, ok := p.(policy.OptionScorer); ok {
		bits |= abi.HookScoreOptions
	}
	if _, ok := p.(policy.BindingPreemptor); ok {
		bits |= abi.HookPreemptBindings
	}
	return bits
}

func (g *guest) configure() (err error, supported bool) {
	c, ok := g.policy.(policy.Configurable)
	if !ok {
		return nil, false
	}
	if g.configured {
		return errTwice, true
	}
	config, err := g.decoder.Config(c.Settings())
	if err != nil {
		return err, true
	}
	g.configured = true
	return c.Configure(config), true
}

// appendSettings appends a declaration of settings in JSON, as sdk/settings parses
// it. encoding/json would make a guest several times larger and import functions that
// hosts do not provide.
func appendSettings(b []byte, list []policy.Setting) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSetting(b, &s)
	}
	return append(b, ']')
}

func appendSetting(b []byte, s *policy.Setting) []byte {
	b = appendText(append(b, `{"name":`...), s.Name)
	b = appendText(append(b, `,"kind":`...), s.Kind.String())
	b = appendText(append(b, `,"doc":`...), s.Doc)
	b = appendText(append(b, `,"default":`...), s.Default)
	if s.Required {
		b = append(b, `,"required":true`...)
	}
	if l := s.Limits; l != nil {
		b = strconv.AppendFloat(append(b, `,"min":`...), l.Min, 'g', -1, 64)
		if *l != *policy.AtLeast(l.Min) {
			b = strconv.AppendFloat(append(b, `,"max":`...), l.Max, 'g', -1, 64)
		}
	}
	b = appendTexts(b, `,"oneOf":[`, s.OneOf)
	if r := s.Range; r != nil {
		b = strconv.AppendFloat(append(b, `,"range":[`...), r.Min, 'g', -1, 64)
		b = append(strconv.AppendFloat(append(b, ','), r.Max, 'g', -1, 64), ']')
	}
	b = appendTexts(b, `,"choices":[`, s.Choices)
	return append(b, '}')
}

// appendTexts appends a list of JSON after its beginning, or nothing if it is empty.
func appendTexts(b []byte, begin string, texts []string) []byte {
	for i, text := range texts {
		if i == 0 {
			b = append(b, begin...)
		} else {
			b = append(b, ',')
		}
		b = appendText(b, text)
	}
	if len(texts) > 0 {
		b = append(b, ']')
	}
	return b
}

// appendText appends a JSON string.
func appendText(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
