package replication

import "github.com/cede-scheduler/cede/core/model"

func versionWith(module []byte, id string) *model.PolicyVersion {
	return &model.PolicyVersion{
		ID: "sha256:" + id, Name: "p", Kind: model.PolicyWasm, Digest: digestOf(module), Size: int64(len(module)),
	}
}
