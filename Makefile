# Holdfast. `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
GO := go
SERVICES := $(shell sed -n 's/^  \([a-z][a-z0-9]*\):.*/\1/p' proto/services.yaml)
# The folders whose tests run side by side.
TESTED := libs proto models $(addprefix services/,$(SERVICES)) loadtest charts release examples sdks sdks/go
# The SDK for Go and libs/replaced are modules of their own, which go.work adds for editors. A build reads one go.mod.
export GOWORK := off
# Every command uses these flags, so that they share compiled packages. No program or test needs debug information.
export GOFLAGS := $(sort $(GOFLAGS) -trimpath -ldflags=-w -gcflags=all=-dwarf=false)
TOOLS := $(HOME)/.cache/holdfast/bin
GOLANGCI := $(TOOLS)/golangci-lint-2.15.0
export HELM := $(TOOLS)/helm-3.22.0
export KIND := $(TOOLS)/kind-0.33.0
export SERVICES
export KUBECONFORM := $(TOOLS)/kubeconform-0.8.0
export KUBE_SCORE := $(TOOLS)/kube-score-1.20.0
export SCHEMAS := $(HOME)/.cache/holdfast/kubernetes-schemas-1
export PGBOUNCER := $(TOOLS)/pgbouncer-1.24.1
export PROMTOOL := $(TOOLS)/promtool
export STRIPE_MOCK := $(TOOLS)/stripe-mock-0.203.0
export OASDIFF := $(TOOLS)/oasdiff-1.37.0
export CHROMIUM := $(TOOLS)/chromium
export K6 := $(TOOLS)/k6-1.8.1
export COSIGN := $(TOOLS)/cosign-3.1.3
TAG ?= dev
COMMIT := $(shell git rev-parse HEAD 2>/dev/null)
STAMP := -ldflags '-w -X holdfast.dev/libs/command.commit=$(COMMIT) -X main.commit=$(COMMIT)'
STYLE := $(patsubst %/package.json,%/assets/style.css,$(wildcard services/*/internal/pages/package.json))
SCALAR := services/gateway/internal/api/docs/assets/scalar.js
SEARCH := services/gateway/internal/api/docs/assets/minisearch.js
FUZZTIME ?= 30s
PAGES := $(wildcard services/*/internal/pages)
GENERATED := proto/secrets.gen.go proto/api proto/events proto/internalapi proto/platformapi proto/eventtypes.gen.go proto/fields.gen.go $(PAGES) services/gateway/internal/api/docs/guides charts/platform/files/services.yaml charts/platform/files/settings.yaml charts/platform/VALUES.md charts/platform/files/dashboards skaffold.yaml docs/settings.md docs/guides/webhooks.md 'sdks/*.gen.*' 'sdks/*_gen.py' 'sdks/*/reference.md'

# The targets that people call, by task: those with a text after "## ". Scripts and CI call the others too.
help:
	@for task in Develop Test Cluster Release; do echo "$$task"; sed -nE "s/^([a-z-]+):.*## $$task: (.*)/\1\t\2/p" $(MAKEFILE_LIST) | awk -F'\t' '{printf "  make %-13s %s\n", $$1, $$2}'; done

setup: installed # build, and install PostgreSQL and Redis if they are missing
	@bin/local with --kafka none -- true

# The linker uses little more than one processor, so programs are built two at a time.
TOGETHER = +@$(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j3)

# The compiler collects garbage only in large packages.
COMPILE = GOGC=off GOMEMLIMIT=1GiB .ci/build -p 2
ASSETS := $(SCALAR) $(SEARCH) $(STYLE)

build: services ## Develop: build every process and the command line into bin/
	$(TOGETHER) bin/local-kafka bin/local-stripe bin/holdfast

# The embedded broker is for machines that cannot run Apache Kafka, and for tests.
EMBEDDED = $(if $(and $(filter auto apache,$(or $(KAFKA),auto)),$(shell command -v java),$(shell command -v mvn)),,bin/local-kafka)
platform: services
	$(TOGETHER) bin/local-stripe $(EMBEDDED)

# One command, so that each package is compiled once.
services: | $(ASSETS) $(if $(wildcard bin/local),,compiled)
	@mkdir -p bin; echo "build $(addprefix bin/,$(SERVICES) local)"; $(COMPILE) $(STAMP) -o bin/ $(addprefix ./services/,$(SERVICES) local)

# What needs no assets is compiled while they are downloaded.
compiled:
	@$(COMPILE) $(addprefix ./services/,$(filter-out $(foreach a,$(ASSETS),$(word 2,$(subst /, ,$a))),$(SERVICES)) local)

# The packages of PostgreSQL and Redis are installed during the build.
installed:
	$(TOGETHER) build servers

started:
	$(TOGETHER) platform servers

servers:
	@.ci/servers

bin/local-kafka: SOURCE := services/local/kafka
bin/local-stripe: SOURCE := services/local/stripe
bin/holdfast: SOURCE := sdks/cli
bin/loadtest: SOURCE := loadtest
bin/oauth-app: SOURCE := examples/oauth-app
bin/receiver: SOURCE := examples/receiver/go
bin/%: SOURCE = services/$*
bin/%: FORCE | $(ASSETS)
	@mkdir -p bin; echo "build $@"; $(COMPILE) $(STAMP) -o $@ ./$(SOURCE)

# The services with failpoints: the steps at which the end-to-end suite crashes them.
FAILPOINTS = $(sort $(foreach s,$(SERVICES),$(if $(shell grep -rl --include='*.go' 'failpoint\.Here' services/$s),$s)))
failpoints:
	@echo "build bin/failpoints/"; $(COMPILE) -tags failpoints -o bin/failpoints/ $(addprefix ./services/,$(FAILPOINTS))

FORCE:

$(SCALAR) $(SEARCH): .ci/portal
	@.ci/portal $@

$(STYLE): .ci/pages $(wildcard services/*/internal/pages/*.templ services/*/internal/pages/*.go services/*/internal/pages/*.css services/*/internal/pages/package*.json)
	@.ci/pages $@

up: started ## Develop: build and start the whole platform (LOG=all shows every request); stop it with Ctrl-C
	@bin/local up

down: ## Develop: stop the platform of this checkout
	@bin/local down

END_TO_END := build bin/oauth-app bin/receiver storefront failpoints $(HELM) $(PROMTOOL) $(PGBOUNCER) $(CHROMIUM) # what the end-to-end tests need

test: $(END_TO_END) $(KUBECONFORM) $(SCHEMAS) $(STRIPE_MOCK) $(OASDIFF) packages ## Test: run all tests with real PostgreSQL, Redis, and Kafka (TEST_POSTGRES=18: on PostgreSQL 18 only)
	@[ -n "$$TEST_POSTGRES" ] || [ "$$(uname -sm)" != "Linux x86_64" ] || TEST_POSTGRES=18 bin/local with --kafka embedded --pooler -- .ci/newest
	@bin/local with --kafka both --pooler -- .ci/gotest services/local,-skip,InABrowser services/local/internal/e2e,-run,InABrowser $(TESTED) # the longest first

test-pooler: $(END_TO_END) # run the end-to-end tests with all services behind PgBouncer in transaction mode
	@POOLER=4 DATABASE_MAX_CONNS=5 WORKER_DATABASE_MAX_CONNS=2 bin/local with --kafka both --pooler -- .ci/gotest services/local/internal/e2e,-skip,InABrowser

failover: build ## Test: fail PostgreSQL, Redis, and Kafka under load, alone and under the whole platform, and increase partitions (docs/failover.md)
	@bin/local with --kafka auto -- sh -c 'cd libs && TEST_FAILOVER=1 go test -count=1 -timeout 20m -v -p 1 -run "Promotion|Increase|AllNumbers|Broker" ./outbox && cd ../services/gateway && go test -count=1 -v -run "SilentMaster|Failover" ./internal/store'
	@TEST_FAILOVER=1 $(GO) test -C services/local -vet=off -count=1 -v -timeout 40m ./internal/e2e -run TestFailover

test-full: ## Test: run all tests with many more rounds and rows
	@TEST_SCALE=full $(MAKE) test

PROOF = PROOF_RESULTS=$(CURDIR)/.run/proof.jsonl PROOF_COMMIT=$$(git rev-parse --short=8 HEAD) # where results go, for docs/proof.md

prove: build # run every order and every crash, for MINUTES each, the seeded faults and the models, and write docs/proof.md; SCHEDULE='…' runs the order of a failure
	@mkdir -p .run
	@TEST_SCALE=full $(PROOF) bin/local with --kafka auto -- $(GO) test -C services/local -vet=off -count=1 -v -timeout 5h \
		-run '$(if $(SCHEDULE)$(FAMILY),TestOrders,TestOrders|TestSeededFaults|TestTracesOfModels)' ./internal/e2e
	@[ -n '$(SCHEDULE)$(FAMILY)' ] || { TEST_SCALE=full $(PROOF) $(GO) test -vet=off -count=1 -timeout 2h ./models && .ci/proof .run/proof.jsonl; }

MINUTES ?= 60
history: build # drive the whole API under faults for MINUTES, check what clients and the event log saw, and write docs/proof.md
	@mkdir -p .run; HISTORY=$(MINUTES) $(PROOF) $(GO) test -C services/local -vet=off -count=1 -v -timeout 0 -run TestHistory ./internal/e2e
	@.ci/proof .run/proof.jsonl

drill: build ## Test: run the recovery drill of docs/operations/back-up.md: kill everything under load, restore to moments, repair, and check
	@DRILL=full $(GO) test -C services/local -vet=off -count=1 -v -timeout 40m ./internal/e2e -run TestRecoveryDrill

lint: build $(GOLANGCI) ## Test: lint the code, the contract, the event definitions, the texts, what the documentation names, and the commit messages
	@.ci/lint $(GOLANGCI)

$(GOLANGCI):
	@echo "build golangci-lint (once)"; mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/new $(GO) install -p 2 github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	@mv $(TOOLS)/new/golangci-lint $@

$(HELM):
	@echo "build helm (once)"; mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/new $(GO) install -p 2 helm.sh/helm/v3/cmd/helm@v3.22.0
	@mv $(TOOLS)/new/helm $@

$(KIND):
	@echo "build kind (once)"; mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/new $(GO) install -p 2 sigs.k8s.io/kind@v0.33.0
	@mv $(TOOLS)/new/kind $@

$(KUBECONFORM):
	@echo "build kubeconform (once)"; mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/new $(GO) install -p 2 github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
	@mv $(TOOLS)/new/kubeconform $@

$(SCHEMAS):
	@echo "download the schemas of Kubernetes (once)"
	@.ci/kubernetes-schemas $@

$(KUBE_SCORE):
	@echo "build kube-score (once)"; mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/new $(GO) install -p 2 github.com/zegl/kube-score/cmd/kube-score@v1.20.0
	@mv $(TOOLS)/new/kube-score $@

$(K6):
	@echo "build k6 (once)"; mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/new CGO_ENABLED=0 $(GO) install -p 2 go.k6.io/k6@v1.8.1
	@mv $(TOOLS)/new/k6 $@

$(COSIGN):
	@echo "build cosign (once)"; mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/new $(GO) install -p 2 github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3
	@mv $(TOOLS)/new/cosign $@

$(STRIPE_MOCK):
	@echo "build stripe-mock (once)"; mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/new $(GO) install -p 2 github.com/stripe/stripe-mock@v0.203.0
	@mv $(TOOLS)/new/stripe-mock $@

$(OASDIFF):
	@echo "build oasdiff (once)"; mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/new $(GO) install -p 2 github.com/oasdiff/oasdiff@v1.37.0
	@mv $(TOOLS)/new/oasdiff $@

$(PROMTOOL):
	@.ci/promtool $@

pgbouncer: $(PGBOUNCER)

$(PGBOUNCER):
	@.ci/pgbouncer $@

$(CHROMIUM):
	@.ci/packages chromium && mkdir -p $(TOOLS) && ln -sf "$$(command -v chromium)" $@

packages:
	@.ci/packages nginx tmux jq

storefront: # build examples/storefront
	@.ci/storefront build

images: $(SCALAR) $(SEARCH) $(STYLE) # build an image of every service, holdfast/<service>:$(TAG), without network access
	@for s in $(SERVICES); do .ci/image $$s $(TAG) || exit 1; done

release: ## Release: publish a release of HEAD, such as make release VERSION=1.0.0 REGISTRY=registry.example.com KEY=cosign.key
	@cd release && $(GO) run . --root "$(CURDIR)" --version "$(VERSION)" --registry "$(REGISTRY)" $(if $(KEY),--key "$(abspath $(KEY))") $(if $(SOURCE),--source "$(SOURCE)")

release-test: $(HELM) $(COSIGN) # release all images for all platforms twice, and compare and verify the results with cosign and helm
	@cd release && TEST_SCALE=full $(GO) test -count=1 -timeout 90m -v -run TestRelease ./internal/publish

images-data: build # build an image of PostgreSQL, Redis, and Kafka for machines without a registry
	@.ci/image-data dev

kind-up: $(KIND) # use the development cluster of KUBECONFIG and KIND_CLUSTER, or create one
	@.ci/kind up

kind-install: kind-up build images $(HELM) ## Cluster: install or upgrade the datastores and the platform in the cluster
	@options=$$(.ci/kind images) && bin/local kind install $$options $(if $(VALUES),--values $(VALUES))

kind-test: build images bin/oauth-app $(KIND) $(HELM) $(PROMTOOL) $(CHROMIUM) ## Cluster: test the platform in the cluster: upgrades, killed pods, drained nodes, network policies
	@.ci/kind-test "$(TEST)"

kind-drill: build images $(KIND) $(HELM) # run the recovery drill of docs/operations/back-up.md in the cluster: lose all data, restore, repair, and check
	@DRILL=$${DRILL:-full} .ci/kind-test

kind-release-test: kind-up $(HELM) # release PREVIOUS (the last tag) and HEAD, and upgrade and roll back under load in an empty cluster
	@.ci/kind-release-test "$(PREVIOUS)"

kind-load: $(KIND) $(K6) # run a k6 load test as a Job in the cluster, such as make kind-load SCENARIO=steady
	@.ci/kind-load "$(SCENARIO)"

kind-uninstall: build $(HELM) # uninstall the platform from the cluster, except volumes and keys
	@bin/local kind uninstall

kind-down: $(KIND) ## Cluster: delete the cluster, or the namespace if the cluster existed before
	@.ci/kind down

chart-audit: $(HELM) $(KUBE_SCORE) # audit what the chart renders with kube-score and checkov
	@.ci/chart-audit

gen: ## Develop: generate code and docs from the contract, the event definitions, the list of services, the pages, the guides, and the settings
	@cd proto && $(GO) run ./generate
	@cd proto && $(GO) run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen.yaml ordered/openapi.yaml
	@cd proto && for n in $(basename $(notdir $(wildcard proto/internal/*.yaml))); do $(GO) run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen-internal.yaml -o internalapi/$$n.gen.go ordered/$$n.yaml || exit 1; done
	@cd proto && $(GO) run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen-platform.yaml -o platformapi/platform.gen.go ordered/platform.yaml
	@cd proto && npx --yes @bufbuild/buf@1.75.0 generate
	@for d in $(PAGES); do $(GO) run github.com/a-h/templ/cmd/templ@v0.3.977 generate -log-level error -path $$d || exit 1; done
	@cd sdks/generate && $(GO) run . && $(GO) run . -views openapi
	@cd sdks/go && $(GO) run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen.yaml ../generate/openapi/openapi-go.json
	@cd services/gateway && $(GO) run ./internal/api/docs/generate
	@cd charts && $(GO) run ./generate
	@cd libs && $(GO) run ./service/settings
	@.ci/sdk-python gen
	@.ci/sdk-typescript gen

collections: # write sdks/collections, the requests for Postman and Bruno
	@$(GO) run ./sdks/generate -collections sdks/collections

contract-matrix: # run generators of other projects on the served contract (proto/matrix/README.md)
	@BASE_URL=$(BASE_URL) API_KEY=$(API_KEY) .ci/matrix $(MATRIX)

verify: gen ## Test: fail if generated files or module files are out of date
	@for m in . sdks/go; do $(GO) mod tidy -C $$m -diff || { echo "run: make tidy"; exit 1; }; done
	@git diff --exit-code --stat -- $(GENERATED) || { echo "generated files are stale: run make gen and commit"; exit 1; }

tidy: ## Develop: tidy go.mod and go.sum
	@for m in . sdks/go; do $(GO) mod tidy -C $$m || exit 1; done

bench: build bin/loadtest ## Test: run benchmarks against nginx and pgbench on a temporary platform (loadtest/README.md)
	@.ci/packages nginx || true
	@[ -z "$(POOLER)" ] || [ -e $(PGBOUNCER) ] || .ci/pgbouncer $(PGBOUNCER)
	@bin/loadtest bench

load: $(K6) ## Test: run a k6 load test, such as make load SCENARIO=steady (loadtest/k6/README.md)
	@.ci/load "$(SCENARIO)"

fuzz: build ## Test: run each fuzz target for FUZZTIME (30s)
	@bin/local with --kafka none -- .ci/fuzz $(FUZZTIME)

hooks: ## Develop: check each commit of this checkout before git creates it; undo with git config --unset core.hooksPath
	@git config core.hooksPath .ci/hooks

clean: ## Develop: stop the platform, and delete its data and the build output
	@[ ! -x bin/local ] || bin/local clean
	@rm -rf bin $(SCALAR) $(SEARCH)

.PHONY: FORCE services compiled platform installed started servers prove history drill failpoints pgbouncer packages storefront help setup build up down test test-pooler test-full lint images images-data kind-up kind-install kind-test kind-drill kind-load kind-uninstall kind-down chart-audit gen collections contract-matrix verify tidy bench load fuzz hooks clean release release-test kind-release-test failover
