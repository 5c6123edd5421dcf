package policyflags

import "strings"

// ShortVersion is how a policy's version is shown: the first digits of its hash.
func ShortVersion(id string) string {
	const digits = 12
	hash := strings.TrimPrefix(id, "sha256:")
	return hash[:min(len(hash), digits)]
}

// VersionName is N@V, as commands take it.
func VersionName(name, id string) string {
	if id == "" {
		return name
	}
	return name + "@" + ShortVersion(id)
}
