package client

import "context"

// NodeRisk lists the victims that would be next on a node, for jobs of rising priority. The
// server asked its policies about a hypothetical job that runs only there and needs one
// unit more than is free.
type NodeRisk struct {
	NodeID      string
	Resource    string `json:",omitempty"` // that the hypothetical job requests
	Amount      int64  `json:",omitempty"`
	Levels      []NodeRiskLevel
	Reason      string `json:",omitempty"` // why nothing can be evicted
	Evaluations int    // decisions that were made
}

// NodeRiskLevel holds the victims of a job of at least this priority, below that of the next level.
type NodeRiskLevel struct {
	From    int
	Victims []WhatIfRef // empty: nothing
}

// Risk returns the victims that would be next on a node.
func (n Nodes) Risk(ctx context.Context, id string, q *QueryOptions) (out *NodeRisk, meta *QueryMeta, err error) {
	meta, err = n.c.get(ctx, q, &out, "node", id, "risk")
	return out, meta, err
}
