package api

import _ "embed"

// document is the OpenAPI document, made of the table of routes and the types
// and comments of sdk/client.
//
//go:generate go test -run TestDocument -write
//go:embed openapi.json
var document []byte
