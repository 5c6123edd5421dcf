package registry

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/cede-scheduler/cede/plugins/bundle"
)

// mergeConfig returns the configuration of the manifest, overridden by the operator's
// settings.
func mergeConfig(b *bundle.Bundle, config []byte) ([]byte, error) {
	if len(b.Manifest.Config) == 0 {
		return config, nil
	}
	merged := map[string]any{}
	maps.Copy(merged, b.Manifest.Config)
	if len(config) > 0 {
		var given map[string]json.RawMessage
		if err := json.Unmarshal(config, &given); err != nil {
			return nil, fmt.Errorf("policy %s: configuration: must be an object of settings: %w", b.Manifest.Name, err)
		}
		for name, value := range given {
			merged[name] = value
		}
	}
	return json.Marshal(merged)
}
