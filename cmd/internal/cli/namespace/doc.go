// Package namespace holds the cede namespace commands and reads files of namespaces.
package namespace
