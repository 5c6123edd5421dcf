package main

import (
	"bytes"
	"os"
	"testing"
)

func TestGenerate_MatchesTheCommittedFile(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../messages_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("messages_gen.go is outdated: run go generate in core/replication/codec")
	}
}

func TestWords(t *testing.T) {
	if got := words("NodeStatus"); got != "node status" {
		t.Errorf("got %q", got)
	}
}
