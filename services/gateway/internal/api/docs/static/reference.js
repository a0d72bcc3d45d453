// Starts Scalar without anything from other servers: no fonts, proxy, telemetry, or assistant. The credential that a reader enters
// stays in the memory of the tab, and requests go to this server only.
'use strict';

Scalar.createApiReference('#reference', {
  url: '/docs/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  persistAuth: false,
  proxyUrl: '',
  externalUrls: { dashboardUrl: location.origin, registryUrl: location.origin, proxyUrl: '', apiBaseUrl: location.origin },
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  documentDownloadType: 'none',
  hiddenClients: true,
  authentication: { preferredSecurityScheme: 'bearer' },
});

// The buttons that copy an example contain only an icon.
const name = () => {
  for (const button of document.querySelectorAll('button.scalar-code-copy:not([aria-label])')) button.setAttribute('aria-label', 'Copy');
};
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
