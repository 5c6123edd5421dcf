package toolchain

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
)

// lineSections are the sections from which a host finds the lines of a trap. They take a
// tenth of the debug information, and are loaded with the module on every server.
var lineSections = []string{".debug_line", ".debug_line_str"}

var errNotAModule = errors.New("the linker produced an invalid module")

// stripDebug removes debug information from a module, except for line tables. Linkers
// remove all of it or none.
func stripDebug(path string) error {
	module, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	const header = 8
	if len(module) < header {
		return errNotAModule
	}
	kept := slices.Clone(module[:header])
	for rest := module[header:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return errNotAModule
		}
		content := rest[1+n:][:size]
		if name := customName(rest[0], content); !strings.HasPrefix(name, ".debug_") || slices.Contains(lineSections, name) {
			kept = append(kept, rest[:1+n+len(content)]...)
		}
		rest = rest[1+n+len(content):]
	}
	return os.WriteFile(path, kept, 0o666)
}

// customName returns the name of a custom section, or "" for any other section.
func customName(id byte, content []byte) string {
	size, n := binary.Uvarint(content)
	if id != 0 || n <= 0 || size > uint64(len(content)-n) {
		return ""
	}
	return string(content[n:][:size])
}
