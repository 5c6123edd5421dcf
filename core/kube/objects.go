package kube

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/kube/dra"
)

// The types contain the fields that affect scheduling, including those that the model
// cannot express, which are reported. All other fields are skipped while decoding.
// DESIGN.md explains why k8s.io/api is not used.

// Metadata identifies an object.
type Metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	Labels            map[string]string `json:"labels"`
	Annotations       Annotations       `json:"annotations"`
	Owners            []Owner           `json:"ownerReferences"`
	CreationTimestamp string            `json:"creationTimestamp"`
	DeletionTimestamp string            `json:"deletionTimestamp"`
}

// An Owner is an owner reference.
type Owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller bool   `json:"controller"`
}

// Annotations contains the annotations that affect scheduling. Others may be long and
// are dropped while decoding.
type Annotations map[string]string

const (
	mirrorPod  = "kubernetes.io/config.mirror"
	toleration = "preemption-toleration.scheduling.x-k8s.io/"
)

// UnmarshalJSON retains the relevant annotations.
func (a *Annotations) UnmarshalJSON(text []byte) error {
	var all map[string]string
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for k, v := range all {
		if k != mirrorPod && !strings.HasPrefix(k, toleration) {
			continue
		}
		if *a == nil {
			*a = Annotations{}
		}
		(*a)[k] = v
	}
	return nil
}

// A Node is a Kubernetes node.
type Node struct {
	Metadata Metadata   `json:"metadata"`
	Spec     NodeSpec   `json:"spec"`
	Status   NodeStatus `json:"status"`
}

// A NodeSpec is the spec of a node.
type NodeSpec struct {
	Unschedulable bool    `json:"unschedulable"`
	Taints        []Taint `json:"taints"`
}

// A Taint repels pods that do not tolerate it.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// A NodeStatus is the status of a node.
type NodeStatus struct {
	Capacity    ResourceList    `json:"capacity"`
	Allocatable ResourceList    `json:"allocatable"`
	Conditions  []NodeCondition `json:"conditions"`
}

// A NodeCondition is a condition in the status of a node.
type NodeCondition struct {
	Type              string `json:"type"`
	Status            string `json:"status"`
	LastHeartbeatTime string `json:"lastHeartbeatTime"`
}

// A Pod is a Kubernetes pod.
type Pod struct {
	Metadata Metadata  `json:"metadata"`
	Spec     PodSpec   `json:"spec"`
	Status   PodStatus `json:"status"`
}

// A PodSpec is the spec of a pod or a pod template.
type PodSpec struct {
	NodeName                  string                `json:"nodeName"`
	SchedulerName             string                `json:"schedulerName"`
	SchedulingGates           []NamedReference      `json:"schedulingGates"`
	Priority                  *int32                `json:"priority"`
	PriorityClassName         string                `json:"priorityClassName"`
	PreemptionPolicy          string                `json:"preemptionPolicy"`
	RestartPolicy             string                `json:"restartPolicy"`
	TerminationGracePeriod    *int64                `json:"terminationGracePeriodSeconds"`
	HostNetwork               bool                  `json:"hostNetwork"`
	RuntimeClassName          string                `json:"runtimeClassName"`
	Containers                []Container           `json:"containers"`
	InitContainers            []Container           `json:"initContainers"`
	Resources                 *ResourceRequirements `json:"resources"`
	Overhead                  ResourceList          `json:"overhead"`
	NodeSelector              map[string]string     `json:"nodeSelector"`
	Affinity                  *Affinity             `json:"affinity"`
	Tolerations               []Toleration          `json:"tolerations"`
	TopologySpreadConstraints []SpreadConstraint    `json:"topologySpreadConstraints"`
	Volumes                   []Volume              `json:"volumes"`
	ResourceClaims            []PodClaim            `json:"resourceClaims"`
	SchedulingGroup           *SchedulingGroup      `json:"schedulingGroup"`
	WorkloadRef               json.RawMessage       `json:"workloadRef"`
	OS                        *NamedReference       `json:"os"`
	ActiveDeadlineSeconds     *int64                `json:"activeDeadlineSeconds"`
}

// A NamedReference is any object of which only the name is used.
type NamedReference struct {
	Name string `json:"name"`
}

// A PodClaim is a resource claim of a pod: a claim by name, or one that is created for
// the pod from a template.
type PodClaim struct {
	Name     string `json:"name"`
	Claim    string `json:"resourceClaimName"`
	Template string `json:"resourceClaimTemplateName"`
}

// A SchedulingGroup names the PodGroup of a pod.
type SchedulingGroup struct {
	PodGroup string `json:"podGroupName"`
}

// A Container is a container or init container of a pod.
type Container struct {
	Name          string               `json:"name"`
	RestartPolicy string               `json:"restartPolicy"` // of an init container: Always makes it a sidecar
	Resources     ResourceRequirements `json:"resources"`
	Ports         []Port               `json:"ports"`
}

// ResourceRequirements holds requests and limits.
type ResourceRequirements struct {
	Requests ResourceList `json:"requests"`
	Limits   ResourceList `json:"limits"`
}

// A Port is a container port. If HostPort is set it is also reserved on the node.
type Port struct {
	ContainerPort int32  `json:"containerPort"`
	HostPort      int32  `json:"hostPort"`
	HostIP        string `json:"hostIP"`
	Protocol      string `json:"protocol"`
}

// A Toleration allows a pod on nodes with a matching taint.
type Toleration struct {
	Key               string `json:"key"`
	Operator          string `json:"operator"`
	Value             string `json:"value"`
	Effect            string `json:"effect"`
	TolerationSeconds *int64 `json:"tolerationSeconds"`
}

// An Affinity groups the affinity rules of a pod.
type Affinity struct {
	Node    *NodeAffinity `json:"nodeAffinity"`
	Pod     *PodAffinity  `json:"podAffinity"`
	PodAnti *PodAffinity  `json:"podAntiAffinity"`
}

// A NodeAffinity restricts or ranks nodes by their labels.
type NodeAffinity struct {
	Required *struct {
		Terms []NodeTerm `json:"nodeSelectorTerms"`
	} `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	Preferred []struct {
		Weight     int32    `json:"weight"`
		Preference NodeTerm `json:"preference"`
	} `json:"preferredDuringSchedulingIgnoredDuringExecution"`
}

// A NodeTerm is a conjunction of requirements. A term without requirements matches no
// node.
type NodeTerm struct {
	Expressions []Requirement `json:"matchExpressions"`
	Fields      []Requirement `json:"matchFields"`
}

// A Requirement compares a label or field with values.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// A PodAffinity restricts or ranks nodes by the pods in their topology domain.
type PodAffinity struct {
	Required  []PodTerm `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	Preferred []struct {
		Weight int32   `json:"weight"`
		Term   PodTerm `json:"podAffinityTerm"`
	} `json:"preferredDuringSchedulingIgnoredDuringExecution"`
}

// A PodTerm selects pods within a topology domain.
type PodTerm struct {
	Selector          *LabelSelector `json:"labelSelector"`
	Namespaces        []string       `json:"namespaces"`
	NamespaceSelector *LabelSelector `json:"namespaceSelector"`
	TopologyKey       string         `json:"topologyKey"`
	MatchLabelKeys    []string       `json:"matchLabelKeys"`
	MismatchLabelKeys []string       `json:"mismatchLabelKeys"`
}

// A SpreadConstraint spreads pods over topology domains.
type SpreadConstraint struct {
	MaxSkew            int32          `json:"maxSkew"`
	TopologyKey        string         `json:"topologyKey"`
	WhenUnsatisfiable  string         `json:"whenUnsatisfiable"`
	Selector           *LabelSelector `json:"labelSelector"`
	MinDomains         *int32         `json:"minDomains"`
	NodeAffinityPolicy string         `json:"nodeAffinityPolicy"`
	NodeTaintsPolicy   string         `json:"nodeTaintsPolicy"`
	MatchLabelKeys     []string       `json:"matchLabelKeys"`
}

// A Volume contains the volume sources that may restrict the nodes of a pod.
type Volume struct {
	Claim     json.RawMessage `json:"persistentVolumeClaim"`
	Ephemeral json.RawMessage `json:"ephemeral"`
	GCE       json.RawMessage `json:"gcePersistentDisk"`
	AWS       json.RawMessage `json:"awsElasticBlockStore"`
	RBD       json.RawMessage `json:"rbd"`
	ISCSI     json.RawMessage `json:"iscsi"`
}

// restrictsNodes reports whether the volume may restrict the nodes of a pod.
func (v *Volume) restrictsNodes() bool {
	return slices.ContainsFunc([]json.RawMessage{v.Claim, v.Ephemeral, v.GCE, v.AWS, v.RBD, v.ISCSI}, isSet)
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// A PodStatus is the status of a pod.
type PodStatus struct {
	Phase             string            `json:"phase"`
	StartTime         string            `json:"startTime"`
	NominatedNodeName string            `json:"nominatedNodeName"`
	Conditions        []PodCondition    `json:"conditions"`
	Containers        []ContainerStatus `json:"containerStatuses"`
	ResourceClaims    []PodClaim        `json:"resourceClaimStatuses"` // the claims that were created from templates
}

// A PodCondition is a condition in the status of a pod.
type PodCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// A ContainerStatus holds the resources allocated to a container. After an in-place
// resize they may exceed its requests.
type ContainerStatus struct {
	Name      string       `json:"name"`
	Allocated ResourceList `json:"allocatedResources"`
}

// A LabelSelector selects objects by their labels.
type LabelSelector struct {
	Labels      map[string]string `json:"matchLabels"`
	Expressions []Requirement     `json:"matchExpressions"`
}

// A Budget is a PodDisruptionBudget.
type Budget struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		MinAvailable               *Bound         `json:"minAvailable"`
		MaxUnavailable             *Bound         `json:"maxUnavailable"`
		Selector                   *LabelSelector `json:"selector"`
		UnhealthyPodEvictionPolicy string         `json:"unhealthyPodEvictionPolicy"`
	} `json:"spec"`
	Status struct {
		DisruptionsAllowed *int32            `json:"disruptionsAllowed"`
		DisruptedPods      map[string]string `json:"disruptedPods"`
	} `json:"status"`
}

// A PriorityClass is a named priority.
type PriorityClass struct {
	Metadata         Metadata `json:"metadata"`
	Value            int32    `json:"value"`
	GlobalDefault    bool     `json:"globalDefault"`
	PreemptionPolicy string   `json:"preemptionPolicy"`
	Description      string   `json:"description"`
}

// A Namespace is a namespace.
type Namespace struct {
	Metadata Metadata `json:"metadata"`
}

// A PodGroup is a group of pods that are scheduled, and if its disruption mode is All
// evicted, together. Only those of the group scheduling.k8s.io are decoded.
type PodGroup struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Parent           string `json:"parentCompositePodGroupName"`
		SchedulingPolicy struct {
			Gang *struct {
				MinCount int32 `json:"minCount"`
			} `json:"gang"`
		} `json:"schedulingPolicy"`
		SchedulingConstraints GroupConstraints `json:"schedulingConstraints"`
		DisruptionMode        struct {
			All *struct{} `json:"all"`
		} `json:"disruptionMode"`
		Priority          *int32 `json:"priority"`
		PriorityClassName string `json:"priorityClassName"`
		PreemptionPolicy  string `json:"preemptionPolicy"`
	} `json:"spec"`
}

// GroupConstraints are the scheduling constraints of a PodGroup.
type GroupConstraints struct {
	Topology   []TopologyConstraint
	HasUnknown bool // there are constraints of other kinds
}

// A TopologyConstraint requires that all pods of a group are in one domain of a topology key.
type TopologyConstraint struct {
	Key string `json:"key"`
}

// UnmarshalJSON also records whether a later version of Kubernetes has added constraints.
func (c *GroupConstraints) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for name, raw := range all {
		if !strings.EqualFold(name, "topology") {
			c.HasUnknown = c.HasUnknown || isSet(raw)
		} else if err := json.Unmarshal(raw, &c.Topology); err != nil {
			return err
		}
	}
	return nil
}

// DependsOnOtherNodes reports whether the feasibility of a node for a pod of the group
// depends on other nodes: if they may share a domain of the group.
func (g *PodGroup) DependsOnOtherNodes() bool {
	return slices.ContainsFunc(g.Spec.SchedulingConstraints.Topology, func(c TopologyConstraint) bool { return c.Key != hostname })
}

// Key returns the key by which pods refer to the group.
func (g *PodGroup) Key() string { return dra.Key(g.Metadata.Namespace, g.Metadata.Name) }

// A Workload is an object with a pod template: a Deployment, StatefulSet, ReplicaSet,
// ReplicationController, DaemonSet or Job.
type Workload struct {
	Kind     string
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Replicas    *int32 `json:"replicas"`
		Parallelism *int32 `json:"parallelism"`
		Completions *int32 `json:"completions"`
		Suspend     bool   `json:"suspend"`
		Template    struct {
			Metadata Metadata `json:"metadata"`
			Spec     PodSpec  `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// isInvalidTime reports whether a text is present but not a valid timestamp.
func isInvalidTime(text string) bool { return text != "" && timeOf(text).IsZero() }

// timeOf parses a timestamp. It returns the zero time if the text is empty or invalid.
func timeOf(text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 1990 || t.Year() > 2200 {
		return time.Time{}
	}
	return t
}
