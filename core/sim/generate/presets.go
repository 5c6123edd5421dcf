package generate

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed presets/*.yaml
var presetFiles embed.FS

// Preset is a spec that is embedded in the program.
type Preset struct{ Name, Description string }

// Presets returns the presets, sorted by name.
func Presets() []Preset {
	names, _ := fs.Glob(presetFiles, "presets/*.yaml") // the pattern is valid and the files are embedded
	var list []Preset
	for _, file := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "presets/"), ".yaml")
		data, _ := preset(name)
		p := Preset{Name: name}
		if s, problems := decode(data); len(problems) == 0 {
			p.Description = s.Description
		}
		list = append(list, p)
	}
	return list
}

func preset(name string) ([]byte, bool) {
	data, err := presetFiles.ReadFile("presets/" + name + ".yaml")
	return data, err == nil
}
