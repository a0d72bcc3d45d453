package cluster

// Installation specifies what Install installs. Relative paths are in the checkout.
type Installation struct {
	Datastores    string // folder of manifests
	Chart         string // folder
	Tag, Registry string // of the images: a registry if the chart has digests
	Values        []string
}
