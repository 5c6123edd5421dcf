package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// settingsJSON returns the settings of the manifest in the form that sdk/settings decodes.
func (m *Manifest) settingsJSON() []byte {
	if len(m.Settings) == 0 {
		return nil
	}
	text, err := json.Marshal(m.Settings)
	if err != nil {
		panic(err) // it contains only types that JSON supports
	}
	return text
}

// Describe sets hooks and settings of the manifest to those of the module.
func (m *Manifest) Describe(hooks policy.Hooks, list []sdk.Setting) error {
	m.Hooks, m.Settings = HookNames(hooks), nil
	if len(list) == 0 {
		return nil
	}
	return json.Unmarshal(settings.Encode(list), &m.Settings)
}

// namesOfHooks returns the names of all hooks in manifests, by their bit: the operations of
// hooks have the order of the bits.
func namesOfHooks() (names []string) {
	for _, name := range abi.Names[abi.OpPriorityDelta:] {
		names = append(names, strings.ToLower(name[:1])+name[1:])
	}
	return names
}

// HookNames returns the names that manifests use for hooks.
func HookNames(hooks policy.Hooks) []string {
	var names []string
	for i, name := range hookNames {
		if hooks>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return names
}

// CheckModule returns an error if the manifest contradicts the module. Fields that the
// manifest omits match any module.
func (m *Manifest) CheckModule(hooks policy.Hooks, list []sdk.Setting) error {
	var errs []error
	if want := HookNames(hooks); len(m.Hooks) > 0 && !sameElements(m.Hooks, want) {
		errs = append(errs, fmt.Errorf("hooks: manifest lists %s, module has %s", joinNames(m.Hooks), joinNames(want)))
	}
	if declared := m.settingsJSON(); declared != nil && string(declared) != string(settings.Encode(list)) {
		errs = append(errs, errors.New("settings: manifest and module differ"))
	}
	if len(errs) > 0 {
		errs = append(errs, errors.New("run `cede policy build` to update the manifest"))
	}
	return errors.Join(errs...)
}

// sameElements reports whether a and b are equal apart from their order.
func sameElements(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func joinNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
