package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// settingsJSON is the manifest's declaration of settings as sdk/settings reads it.
func (m *Manifest) settingsJSON() []byte {
	if len(m.Settings) == 0 {
		return nil
	}
	text, err := json.Marshal(m.Settings)
	if err != nil {
		panic(err) // nothing in it that JSON cannot hold
	}
	return text
}

// Describe writes into the manifest what the module says of itself.
func (m *Manifest) Describe(hooks policy.Hooks, list []sdk.Setting) error {
	m.Hooks, m.Settings = HookNames(hooks), nil
	if len(list) == 0 {
		return nil
	}
	return json.Unmarshal(settings.Encode(list), &m.Settings)
}

// HookNames lists hooks by their names in manifests.
func HookNames(hooks policy.Hooks) []string {
	var names []string
	for i, name := range hookNames {
		if hooks>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return names
}

// CheckModule compares the manifest with what the module says of itself. What the
// manifest leaves open agrees with anything.
func (m *Manifest) CheckModule(hooks policy.Hooks, list []sdk.Setting) error {
	var errs []error
	if want := HookNames(hooks); len(m.Hooks) > 0 && !sameElements(m.Hooks, want) {
		errs = append(errs, fmt.Errorf("hooks: the manifest lists %s, the module has %s", joinNames(m.Hooks), joinNames(want)))
	}
	if declared := m.settingsJSON(); declared != nil && string(declared) != string(settings.Encode(list)) {
		errs = append(errs, errors.New("settings: the manifest declares others than the module"))
	}
	if len(errs) > 0 {
		errs = append(errs, errors.New("write it again with `cede policy build`"))
	}
	return errors.Join(errs...)
}

func sameElements(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func joinNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
