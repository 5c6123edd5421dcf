// Package composition combines policies: the gate of one, the order of others and the
// choice of options of another one act as one policy. It owns the archive in which a
// composition is stored and travels to servers, and the module that calls the parts.
//
// It loads no code: plugins/registry opens the parts of an archive with the hosts of their
// kinds. Package build creates archives from the `use` section of a manifest.
// docs/guides/compose-policies.md defines the combination of answers.
//
// A Module is safe for concurrent use. Its instances serve one goroutine at a time.
package composition
