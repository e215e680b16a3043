"""What `benches/run` is made of: processes and their CPU (`machine`), who is measured (`targets`), what is sent
(`deliveries`, `load`), the rows (`rows`), what else is measured (`extras`, `paced`), and how it is told (`report`,
`plot`)."""
