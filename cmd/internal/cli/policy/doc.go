// Package policy holds the cede policy commands: write, build, check, sign and measure
// policies, and load and activate them on servers. Package policies opens policies.
package policy
