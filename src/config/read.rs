//! From YAML to the sections of a configuration.
//!
//! Reading never stops: where something is missing or wrong a placeholder stands in for it, and the problem that was
//! noted keeps the result from ever being used. So every section is read whole, and its mistakes come out together.

mod key;
mod provider;
mod route;
mod server;
mod store;
mod upstream;

use super::document::Node;
use super::schema::Config;
use super::validate;

/// Reads and judges the whole file.
pub(super) fn config(root: &Node<'_>) -> Config {
    root.fields(|fields| {
        let server = server::read(fields);
        let store = store::read(fields);
        let mut config = Config { server, store, routes: Vec::new() };
        validate::process(root.report(), &config);
        if let Some(routes) = fields.require("routes") {
            let items = routes.items();
            if routes.is_list() && items.is_empty() {
                routes.problem("must have at least one route");
            }
            for item in &items {
                config.routes.push(route::read(item));
                validate::route(root.report(), &config, config.routes.len() - 1);
            }
        }
        config
    })
}
