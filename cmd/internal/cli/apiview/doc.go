// Package apiview finds API objects by ID, prefix or name, and prints the tables and
// explanations that several commands share. It changes nothing on a server.
package apiview
