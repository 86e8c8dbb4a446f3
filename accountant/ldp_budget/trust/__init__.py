"""Nothing is believed: promises are proved exactly, audited from reports, and held to a contract."""
