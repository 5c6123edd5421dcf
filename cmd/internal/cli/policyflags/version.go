package policyflags

import "strings"

// ShortVersion returns the first digits of the hash of a version.
func ShortVersion(id string) string {
	const digits = 12
	hash := strings.TrimPrefix(id, "sha256:")
	return hash[:min(len(hash), digits)]
}

// VersionName returns N@V, as commands accept it.
func VersionName(name, id string) string {
	if id == "" {
		return name
	}
	return name + "@" + ShortVersion(id)
}
