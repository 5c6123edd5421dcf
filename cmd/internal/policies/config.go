package policies

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/plainyaml"
)

// ReadConfig reads the settings of a policy from YAML or JSON; name identifies the
// file in errors. Loading the policy checks whether it accepts them.
func ReadConfig(name string, r io.Reader) (map[string]any, error) {
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, fmt.Errorf("%s is larger than the limit of 1 MiB", name)
	}
	var config map[string]any
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&config); err != nil && !errors.Is(err, io.EOF) {
		p := plainyaml.Problems(err, &config)[0]
		if !p.Syntax {
			return nil, fmt.Errorf("%s: %v: write settings such as halfLife: 10m", name, p)
		}
		return nil, fmt.Errorf("%s: %v", name, p)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s has more than one YAML document", name)
	}
	return config, nil
}
